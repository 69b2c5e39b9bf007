"""Results of an analysis as files: written by workers, read by requests without reading the capture again."""
