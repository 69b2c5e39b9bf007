"""What proves a finding: questions that several rules ask of the same packets, settings and samples."""
