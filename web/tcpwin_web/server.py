"""The `tcpwin serve` command, also installed as `tcpwin-web`."""

from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from tcpwin_web.settings import Settings


class _WithSettings(click.Command):
    """A command whose help lists every setting of the environment."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Environment"):
            formatter.write_dl([(_variable(name), _help_of(name)) for name in Settings.model_fields])


def _variable(name: str) -> str:
    return f"TCPWIN_{name.upper()}"


def _help_of(name: str) -> str:
    field = Settings.model_fields[name]
    default = field.get_default(call_default_factory=True, validated_data={})
    return f"{field.description}" + ("" if default in (None, (), "") else f" [{default}]")


@click.command(cls=_WithSettings, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("captures", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--host", metavar="ADDRESS", help="Address to listen on; any but a loopback one needs TCPWIN_TOKEN.")
@click.option("--port", metavar="PORT", type=click.IntRange(0, 65535), help="TCP port; 0 takes any free one.")
@click.option("--data", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path), help="Folder of all data.")
@click.option("--database-url", metavar="URL", help="Such as postgresql+psycopg://…; by default SQLite in the folder.")
@click.option("--workers", metavar="N", type=click.IntRange(1, 256), help="Number of analyses at the same time.")
@click.option("--keep-payloads", is_flag=True, default=None, help="Keep packets whole, not only their headers.")
@click.option("--retention-days", metavar="DAYS", type=float, help="Delete uploads after this many days; 0 keeps them.")
@click.option("--log-json", is_flag=True, default=None, help="Write the log as one JSON object a line.")
@click.option("--open", "opens", is_flag=True, help="Open the dashboard in a browser, if there is one.")
@click.version_option(package_name="tcpwin-web")
@click.pass_context
def main(context: click.Context, /, captures: tuple[Path, ...], *, opens: bool, **options: Any) -> None:
    """Serve the dashboard and its API until Ctrl-C.

    CAPTURES (captures, bundles, or folders of them) are shown from the start; by default those of a source checkout.
    Options override the environment.
    """
    settings = read_settings({name: value for name, value in options.items() if value is not None})

    # Import only after the settings are valid: it takes seconds.
    from tcpwin_web import logs, shown
    from tcpwin_web._app import create_app
    from tcpwin_web.listening import listen
    from tcpwin_web.tracing import why_not

    if (reason := why_not()) is not None:
        raise click.UsageError(reason)
    logs.set_up(as_json=settings.log_json)
    app = create_app(settings, shown.find_shown(captures or shown.bundled()))
    context.exit(listen(app, settings.host, settings.port, opens=opens))


def read_settings(options: dict[str, Any]) -> Settings:
    """Return the settings of options and environment; wrong ones are a usage error."""
    try:
        return Settings(**options)
    except ValidationError as error:
        problems = []
        for each in error.errors():
            where = ", ".join(_variable(str(name)) for name in each["loc"])
            what = str(each["msg"]).removeprefix("Value error, ")
            problems.append(f"{where}: {what}" if where else what)
        raise click.UsageError("; ".join(problems)) from None
