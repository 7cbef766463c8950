"""Words that decide whether two statements agree: what denies, what opposes what, and what excludes what."""

NEGATORS = frozenset("not never no none without cannot neither nor avoid".split())

EMPTY = frozenset(
    """a an the this that these those it its they them their we our us you your i my he she is are was were be been
    being am to of in on at by for from with as and or but so than then there here who which what when where while
    if into onto up out off over under about per via do does did done has have had having will would shall should must
    may might can could also just only very too all any each every both such own same other some more most""".split()
)
"""Words that carry grammar."""

LIGHT = frozenset(
    """use work run need require keep get go goe make want wish like prefer put let hold store call start happen
    write find take give help provide support allow always usually often please time everyth everi build made done
    come serve own lead name handl generat return host log built kept held written stored called based""".split()
)
"""Stems of words that say little about what a statement is about."""

CHANGES = frozenset(
    """now moved migrated switched replaced changed raised lowered increased decreased reduced upgraded downgraded
    renamed rewritten rebuilt relocated removed dropped deprecated retired since anymore formerly previously longer
    stopped updated converted instead gone split ported swapped bumped extended shortened meanwhile became""".split()
)
"""Words that say that something is no longer as it was."""

TURNS = CHANGES - {"now", "since", "longer", "gone", "instead", "meanwhile", "extended"}
"""Those of them that are verbs: with the same subject they alone say that the old statement is over."""

PEOPLE = frozenset("user person team we customer everyon peopl compani develop".split())
"""Stems of subjects of whom many things are true at once."""

SINGULAR = frozenset("prefer use want need default".split())
"""Stems of verbs of which people have one object at a time; they speak, know and visit many things."""

EXCLUSIVE = frozenset("owns leads maintains manages heads chairs".split())
"""What only one is taken to do."""

VALUED = frozenset(
    "port version limit timeout level size max min maximum minimum count python node java ttl year age".split()
)
"""After these a number is a value; after any other noun it tells one thing from another, as in `bug 101`."""

VERSIONED = frozenset(
    """php ruby rails django react angular vue kotlin swift postgresql postgres mysql mariadb mongodb redis
    elasticsearch kubernetes debian ubuntu""".split()
)
"""After these a number is a version: it excludes another version of the same, and says nothing to other numbers."""

UNITS = frozenset(
    """second seconds minute minutes hour hours day days week weeks month months year years ms s kb mb gb tb bytes
    percent times characters chars lines pixels px requests files items entries rows users euros
    dollars cents""".split()
)

NUMBERS = {
    word: str(number)
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
} | {"twice": "2", "once": "1", "twenty": "20", "thirty": "30", "sixty": "60", "hundred": "100"}

PHRASES = (
    ("no longer", "not longer"),
    ("not any more", "not anymore"),
    ("by hand", "manually"),
    ("have to", "must"),
    ("has to", "must"),
    ("need not", "not need"),
    ("as of", "since"),
    ("stepped down", "stopped"),
    ("rather than", "instead of"),
    ("turned on", "enabled"),
    ("turned off", "disabled"),
    ("switched on", "enabled"),
    ("switched off", "disabled"),
    ("opt in", "optional"),
    ("local time", "localtime"),
)
"""What is read as something else, before words are taken apart."""

OPPOSITES = (
    "enabled disabled",
    "enable disable",
    "allow forbid",
    "allowed forbidden",
    "allow deny",
    "allow prohibit",
    "allow block",
    "permit forbid",
    "required optional",
    "mandatory optional",
    "before after",
    "first last",
    "long short",
    "verbose concise",
    "detailed brief",
    "light dark",
    "on off",
    "public private",
    "automatically manually",
    "automatic manual",
    "love hate",
    "like hate",
    "prefer avoid",
    "include exclude",
    "accept reject",
    "safe unsafe",
    "open closed",
    "strict lenient",
    "mutable immutable",
    "stateful stateless",
    "online offline",
    "fast slow",
    "small large",
    "big small",
    "true false",
    "eager lazy",
    "push pull",
    "upper lower",
    "uppercase lowercase",
    "static dynamic",
    "relative absolute",
    "show hide",
    "keep delete",
    "keep remove",
    "start stop",
    "increase decrease",
    "ascending descending",
    "inside outside",
    "above below",
    "internal external",
    "with without",
    "success failure",
    "alive dead",
    "paid free",
    "optimistic pessimistic",
    "pinned unpinned",
    "serial parallel",
    "valid invalid",
)

RIVALS = (
    "postgresql postgres mysql mariadb sqlite mongodb oracle dynamodb cassandra cockroachdb",
    "tab space",
    "single double",
    "yaml toml json ini xml",
    "utc localtime gmt",
    "integer int float decimal string",
    "cent euro dollar",
    "monday tuesday wednesday thursday friday saturday sunday",
    "january february march april may june july august september october november december",
    "second night hour day week month minute year nightly hourly daily weekly monthly yearly",
    "snake_case camelcase pascalcase kebab-case",
    "python go rust java kotlin typescript javascript ruby php c# swift scala elixir",
    "pip poetry uv pipenv conda npm yarn pnpm bun",
    "pytest unittest nose jest vitest mocha",
    "flake8 ruff pylint eslint biome",
    "black yapf prettier autopep8",
    "vim neovim emacs vscode nano intellij pycharm helix",
    "github gitlab bitbucket codeberg",
    "jenkins circleci travis buildkite",
    "aws gcp azure heroku fly.io vercel netlify",
    "react vue angular svelte solid",
    "redux zustand mobx pinia",
    "flask fastapi django starlette",
    "rest graphql grpc soap",
    "docker podman",
    "kubernetes nomad swarm",
    "rabbitmq kafka sqs nats",
    "redis memcached",
    "merge rebase squash",
    "mit apache gpl bsd",
    "english german french spanish japanese chinese portuguese italian",
    "linux windows macos",
    "bash zsh fish powershell",
    "webpack vite rollup esbuild parcel",
    "sphinx mkdocs docusaurus",
    "sentry rollbar bugsnag",
    "slack teams discord mattermost",
    "notion confluence",
    "css sass less tailwind",
    "http https",
    "debug info warning error critical",
)
"""Words of a row exclude each other where everything else a statement says is the same."""
