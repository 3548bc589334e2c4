"""Whether vendors answer: five states from credential-less probes, shared by all processes, never probed on reading."""
