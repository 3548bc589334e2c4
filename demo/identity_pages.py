"""Pure: the pages of the demonstration identity provider, without scripts."""

from collections.abc import Sequence
from html import escape
from urllib.parse import urlsplit

from demo.identity_requests import MAX_EMAIL_CHARS, MAX_NAME_CHARS

STYLE_PATH = "/identity_provider.css"


def page_headers(form_targets: Sequence[str] = ()) -> dict[str, str]:
    """Headers of all pages: no script, no frame, no cache. `form_targets`: origins that a form may redirect to."""
    # Browsers apply form-action to the redirects after a form, too.
    policy = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'; "
    policy += " ".join(("form-action", "'self'", *form_targets))
    return {
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }


def _page(title: str, body: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>{escape(title)} - demonstration identity provider</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{STYLE_PATH}">
</head>
<body>
<header class="banner"><strong>Demonstration identity provider.</strong>
It checks no password and must not be used in production.</header>
<main>
{body}
</main>
</body>
</html>
"""


def sign_in_page(*, redirect_uri: str, email: str = "", name: str = "", error: str | None = None) -> str:
    """The sign-in form, which posts to its own address; `error` is a sentence about the fields."""
    invalid = ' aria-invalid="true"' if error else ""
    described = "sub-error sub-hint" if error else "sub-hint"
    problem = f'<p class="error" id="sub-error" role="alert">{escape(error)}</p>' if error else ""
    return _page(
        "Error: sign in" if error else "Sign in",
        f"""<h1>Sign in</h1>
<p class="lead">to continue to <strong>{escape(urlsplit(redirect_uri).netloc)}</strong></p>
<form method="post">
<div class="field">
<label for="sub">E-mail address</label>
<input id="sub" name="sub" type="email" value="{escape(email)}" required autofocus maxlength="{MAX_EMAIL_CHARS}"
 autocomplete="email" autocapitalize="none" spellcheck="false" aria-describedby="{described}"{invalid}>
{problem}
<p class="hint" id="sub-hint">Any address works, and no message is sent to it.</p>
</div>
<div class="field">
<label for="name">Name <span class="optional">(optional)</span></label>
<input id="name" name="name" type="text" value="{escape(name)}" maxlength="{MAX_NAME_CHARS}" autocomplete="name">
</div>
<div class="actions">
<button class="primary" type="submit">Sign in</button>
<button class="plain" type="submit" name="action" value="deny" formnovalidate>Cancel</button>
</div>
</form>""",
    )


def people_page(said: str = "") -> str:
    """The form that removes or restores a person; `said` reports the last change."""
    notice = f'<p class="lead" role="status">{escape(said)}</p>' if said else ""
    return _page(
        "People",
        f"""<h1>People</h1>
{notice}
<p class="lead">A removed person cannot sign in, and nothing that was given to them is good any more.</p>
<form method="post">
<div class="field">
<label for="sub">E-mail address</label>
<input id="sub" name="sub" type="email" required maxlength="{MAX_EMAIL_CHARS}" autocomplete="off" spellcheck="false">
</div>
<div class="actions">
<button class="primary" type="submit" name="action" value="remove">Remove</button>
<button class="plain" type="submit" name="action" value="restore">Let in again</button>
</div>
</form>""",
    )


def notice_page(title: str, sentence: str) -> str:
    """A page with one message and no controls."""
    return _page(title, f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(sentence)}</p>')
