from tcpwin.figures.drawing.export import FORMATS as FORMATS
from tcpwin.figures.drawing.export import check as check
from tcpwin.figures.drawing.export import find_browser as find_browser
from tcpwin.figures.drawing.export import format_of as format_of
from tcpwin.figures.drawing.export import write as write
from tcpwin.figures.drawing.request import MAX_ROWS as MAX_ROWS
from tcpwin.figures.drawing.theme import BUDGET_COLOURS as BUDGET_COLOURS
from tcpwin.figures.drawing.theme import THEMES as THEMES
