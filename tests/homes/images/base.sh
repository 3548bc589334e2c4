#!/bin/bash
# Stands in for python:3.11-slim where no image registry is reached: Debian's packages. usage: base.sh ENGINE TAG
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
debootstrap --variant=minbase --include=python3,python3-venv,python3-pip,ca-certificates bookworm "$folder" >&2
ln -sf python3 "$folder/usr/bin/python"
rm -rf "$folder"/var/cache/apt/* "$folder"/var/lib/apt/lists/*
tar -C "$folder" -c . | "$1" import - "$2"
