"""Static files of an image: a script imports another one by its hashed name."""

from __future__ import annotations

from pathlib import Path

from gateway.site.static_files import HashedStaticFiles

SCRIPTS = {
    "js/page.js": "export const all = 1;\n",
    "js/app.js": 'import { all } from "./page.js";\n',
    "package/other.js": 'import { all } from "./not-there.js";\n',
}


def test_scripts_import_each_other_by_hashed_names(tmp_path: Path) -> None:
    for name, text in SCRIPTS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    storage = HashedStaticFiles(location=tmp_path)
    hashed = {name: made for name, made, _ in storage.post_process({name: (storage, name) for name in SCRIPTS})}
    assert hashed["js/page.js"] != "js/page.js"
    assert (
        tmp_path / hashed["js/app.js"]
    ).read_text() == f'import {{ all }} from "./{Path(hashed["js/page.js"]).name}";\n'
    assert (tmp_path / hashed["package/other.js"]).read_text() == SCRIPTS["package/other.js"]
