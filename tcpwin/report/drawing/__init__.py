"""What figures are drawn with: panels, axes, themes, spans, export."""
