"""Results of an analysis as files: what workers write, and how requests read it without reading the capture again."""
