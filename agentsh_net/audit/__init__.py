"""From what a layer saw to the audit trail: events made, joined, read by the detectors, kept and shown."""
