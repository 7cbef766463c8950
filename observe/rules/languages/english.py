"""English phrases for preferences and quoted text."""

from .language import Language

_NOT = r"(?:not (?!sure|only|just|yet|even|that\b|always|working|because)|never |instead of |rather than )"

ENGLISH = Language(
    openers=r"""and | also | but | so | then | ok | okay | please | pls | plz | btw | by the way | oh | hey | no
        | nope | nah | wait | well | just | dude | omg | omfg | ugh | again | actually
        | (?:one|another) (?:more )?thing | reminder | ps | fyi | generally | in general | because | since
        | here | you should | you must | you need to | i want you to | i['’]?d like you to
        | make sure (?:that )?(?:you|to) | can you | could you | try to | let['’]?s | we should | we must
        | (?:in|for|on) (?:this|our|all|my) (?:\w+ )?(?:repo|repository|project|projects|codebase|team|company|app)
        | for the record | for next time | next time | i (?:thought|thougth|thougt|thoguht|tought)""",
    lasting=(
        r"from (?:now|here|today|this point|here) (?:on|onwards?|forwards?|out)\b",
        r"going forward\b",
        r"henceforth\b",
        r"in (?:the )?future,? (?:(?:please|you|can you|always|just|also) )*(?!work|version|release|pr|commit)[a-z]",
        r"(?:always )?remember(?:\s?:|,? (?:that|to|we|i|never|always|don['’]?t|do not)\b)",
        r"keep in mind\b",
        r"(?:don['’]?t|do not|never) forget(?:\s?:| that| we| to (?:always|never))",
        r"(?:make|take) (?:a )?note(?:\s?:| that)",
        r"as a (?:general )?rule\b",
        r"(?:note )?for (?:the |any )?future\b",
        (
            r"(?:our|the|my|team|house|project|general) (?:rule|convention|policy|standard|preference"
            r"|practice|pattern|style)(?: here)? (?:is|was)\b(?! (?:\w+ed|that)\b)"
        ),
        r"(?:(?:house|general|project|new) )?rule ?:",
        rf"[^,;?]{{4,60}} (?:here|for us|in (?:this|our) (?:repo|project|codebase|team)),? {_NOT}",
        r"no [^,;?]{3,60}, ever\b",
        (
            r"(?:we|i)(?: (?!don|do\b|can|could|should|might)\w+){0,2} (?:us(?:e|ing)|run|write|follow|prefer|stick"
            r"|deploy|test|build|work"
            rf"|name|keep|store|put|format|call|host|track) (?!case|this|that|it\b)[^;?]{{1,70}}?,? {_NOT}"
        ),
        (
            r"(?:we|i) (?:don['’]?t|do not|never|no longer) (?:use|write|do|commit|allow|support|mock|push|deploy"
            r"|merge|ship|edit)"
            r" (?!this|that|it\b|the\b)"
        ),
        (
            r"(?:(?:this|our|the) (?:repo|repository|project|codebase|team|app)|our \w+) (?:uses?|is|are|runs?"
            r"|lives?|goes?)"
            rf" [^;?]{{1,60}}, {_NOT}"
        ),
        (
            r"we (?:(?:also|always|only|already) )?use (?!the\b|this|that|it\b)[^,;?]{2,40}"
            r" in (?:production|prod|staging|ci|development|dev)\b"
        ),
        r"it['’]?s [^,;?]{2,30}, not (?!sure|only|just|yet|that|working|a\b|the\b)",
        r"use [^,;?]{2,60}, (?:and )?(?:not?|never|don['’]?t use) ",
        r"use \S+ not \S+",
        r"use (?!this|that|it\b)[^,;?]{2,50} everywhere\b",
        rf"we['’]?re (?:on|using) (?!this|that|it\b)[^,;?]{{2,40}},? {_NOT}",
        r"[^,;:?]{4,160}?,? (?:from now on|going forward|in (?:the )?future|from here on)[.!]*\Z",
        (
            r"(?:whenever|every time|each time|any ?time|when|before|after|if) you [^,;?]{3,80},? (?:(?:please|also"
            r"|you must|you should) )*"
            r"(?:always|never)\b"
        ),
        (
            r"(?:whenever|every time|each time|any ?time) you [^,;?]{3,80}, (?:(?:please|also|you must"
            r"|you should) )*(?:run|update|add|use"
            r"|ask|check|write|commit|make|do|don['’]?t|tell|show|create|bump|format|lint|remember|include|put"
            r"|regenerate|rebuild)\b"
        ),
    ),
    rules=(
        (
            r"(?:always|never)(?: ever)? (?!mind|again|the\b|an?\b|been|had|was|were|got|saw|seen|done|did|known"
            r"|heard|it\b|this|that|there"
            r"|i\b|we\b|you\b|too|so\b|more|works?\b|fails?\b|happens?\b|seems?\b|\w+(?:ing|ed|[^\Ws]s)\b)[a-z]"
        ),
        r"(?:don['’]?t|do not) ever\b",
        (
            r"i(?: would|['’]?d)? (?:(?:always|generally|usually|strongly|really|much) )*prefer (?!this"
            r"|that(?! you)|it\b|your|not\b|option"
            r"|the (?:first|second|third|last|latter|former|other))"
        ),
        r"prefer (?!this|that|it\b|the\b)\w+",
        r"i['’]d (?:much )?rather (?:you|have|we)\b",
        r"i (?:always|never) (?:want|expect|need|like)\b",
        r"i (?:want|need|expect) (?:you to (?:always|never)|every|all) ",
        (
            r"i (?:really )?(?:don['’]?t|do not) (?:like|want) (?:you to|it when|when|to see|any \w+ (?:in|on|from"
            r"|unless|without))\b"
        ),
        r"i (?:really )?(?:hate|like|love) (?:it )?when\b",
        r"we (?:always|never) (?!get|got|see|saw|have\b|had|hit|know|knew|need)[a-z]+(?<!ed)\b",
        r"(?:stop|quit) (?!being|here)\w+ing\b",
        r"(?:please )?no more \w+ing\b",
        r"every (?:new )?\w+ (?:needs|must|should|has to|gets)\b",
        r"all (?:new )?\w+ (?:must|should|have to|need to|go(?:es)? (?:in|under)) ",
        r"(?:must|should)(?: always| never) ",
        r"(?:(?!the\b|an?\b|it\b|this\b|that\b|these\b|those\b)[a-z]+ )?[a-z]+s must (?:always|never) ",
        (
            r"for (?:every|each|all) (?:new )?(?:tests?|commits?|prs?|pull requests?|functions?|methods?|modules?"
            r"|migrations?)\b[^,;?]{0,60},? i(?:['’]?d| would)? (?:like|want|prefer|expect)\b"
        ),
        r"(?:i )?(?:really )?(?:don['’]?t|do not) want (?:my|our) [^,;?]{3,50} (?:to be|in|on)\b",
        (
            r"no (?:(?!matching|such|other|recent|error)\w+ )?(?:comments|emojis?|logs|mocks|abbreviations"
            r"|dependencies|semicolons|globals)(?=!)"
        ),
        r"we (?:don['’]?t|do not) need (?!to\b|this|that|it\b|the\b|these|those|any\b|an?\b)\w+ \w+(?! any ?more)",
        r"avoid \w+ing (?!this|that|it\b|the\b|these|those)\w+",
        r"(?:don['’]?t|do not) (?:use|write|add) (?!this|that|it\b|the\b|these|those|any of|too)[\w`\ufffc.@/-]+",
        (
            r"(?:don['’]?t|do not) [^,;?]{3,80} (?:without (?:asking|my|telling|checking)|unless i|any ?more\b|ever\b"
            r"|(?:(?:on|at|after) )?(?:every|each) (?:single )?(?:time|run|change|commit|turn|step|reply|edit|prompt"
            r"|task))"
        ),
        r"(?:please )?(?:always )?(?:ask|check with) (?:me )?(?:first )?before\b",
    ),
    limited=r"""(?:in|for|on|during|with|within|before|after) (?:this|these|the current
        |the next)(?! (?:\w+ )?(?:repo|repository|project
        | codebase|code base|team|company|app|application|workspace|monorepo|machine|package|org|point)\b)
        | today | tomorrow | tonight | yet | right now | for now | (?:just )?once | meanwhile
        | (?:for|at) the moment | until (?:i|we|you|it|then|further|tomorrow|monday|the) | temporarily
        | here and now | along the way | i (?:don['’]?t|do not) think | in [\w.-]+/[\w./-]+\.\w{1,5}""",
    references=r"""(?:the|a|an|each|it) [^,;?]{0,60}(?:should|must|has to|needs? to|may|can) (?:always|never)
        | (?:this|these)(?! (?:\w+ )?(?:repo|repository|project|codebase|code base|team|company|app
        |application|workspace
        | monorepo|machine|package|org|point)\b) | (?:do|like|use) (?:that|it(?! when)|so) | that one | those
        | (?:my|our|your|its|their) own\W*\Z""",
    corrections=r"""don['’]?t\b | do not\b | stop\b | quit\b | avoid\b
        | you (?:forgot|should|shouldn['’]?t|must)\b | i (?:said|told you|asked)\b | not\b | use\b | never\b
        | always\b | we (?:don['’]?t|do not|use)\b""",
    sources=r"""translat\w+ | rephrase | proofread | summari[sz]e | (?:what do )?you think | do you agree
        | thoughts | below | following | worth doing
        | readme(?:\.md)? | contributing(?:\.md)?
        | (?:claude|agents|gemini|security|rules|conventions)\.md | cursor ?rules | style ?guide | guidelines?
        | docs? | documentation | handbook | wiki | linter | eslint | coderabbit | dependabot | renovate
        | sonar\w* | copilot | bots? | hooks? | reviewer\w* | reviews? | comments? | feedback | e-?mails? | mail
        | messages? | slack | ticket | prompts? | template | snippet | excerpt | paragraph | section | quote
        | blog | article | post | stack ?overflow | spec | policy | instructions | rules | agents? | tweet""",
    attributions=(
        (
            r"(?!(?:i|we|you|that|which|to|not|never|always)\b)[\w.'’-]+ (?:also |just |always |then )?(?:says?|said"
            r"|wrote|writes|commented|complain(?:s|ed)?"
            r"|replied|suggest(?:s|ed)?|posted|sent (?:me|us)|left (?:this|an?|me)|asked (?:me|us|for|that)"
            r"|told (?:me|us)"
            r"|insists?|wants us|keeps saying|recommends?|warns?|reported)"
        ),
        r"according to",
        r"quoting",
        r"got this",
        r"(?:copied|pasted?|taken) from",
        r"message from",
        r"another agent",
        (
            r"(?:tell|remind|warn|instruct|advise)(?:s|ing)? (?:the )?(?:people|users?|them|customers?|everyone"
            r"|readers|visitors)"
        ),
        r"(?:should|must|to|that|which) (?:say|tell)",
        r"(?:translate|rephrase|proofread|reword|spell-?check|summari[sz]e)\b[^:]{0,60}:",
        (
            r"(?:text|tooltip|label|title|message|hint|placeholder|heading|copy|banner|string|sentence|description"
            r"|paragraph|word(?:s|ing))\s?:"
        ),
        r"(?:i|we) (?:keep|kept) (?:seeing|getting)",
    ),
    reasons=r"""because | since | so that | to (?:ensure|make sure)(?: that)? | otherwise | or else
        | (?:as|this) (?:is because|will|would|makes?|keeps?|causes?|breaks?|helps?)""",
)
