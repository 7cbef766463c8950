"""French phrases for preferences and quoted text."""

from .language import Language

_NOT = r"(?:pas (?!sûr|encore|mal)|et non |au lieu d|plut[ôo]t qu|jamais )"
_IMPERATIVE = (
    r"(?:(?:utilis|lanc|ajout|commenc|command|cré|préfix|gard|pens|montr|test|format|exécut|pass|laiss|document"
    r"|nomm|plac|committ?"
    r"|push|pouss|merg|ouvr|rédig|expliqu|demand|vérifi|respect|rajout)(?:e|ez)|écri[st]|écrivez|mets|mettez"
    r"|fais|faites|réponds|prends|dis)"
    r"(?:-\w+)?"
)

FRENCH = Language(
    openers=r"""et | mais | aussi | donc | ok | stp | svp | merci de | s['’]il te pla[iî]t | au fait | sinon
        | non | ah | ps | bref | ici | puis | alors | en fait | d['’]ailleurs | pense à | pensez à | il faut
        | tu dois | tu devrais | je veux que tu | je voudrais que tu
        | (?:dans|sur|pour) (?:ce|notre|le) (?:projet|repo|dépôt|code) | chez nous | par pitié | rappel
        | en général | car | veille à | de manière générale | attention""",
    lasting=(
        r"[àa] partir (?:de maintenant|d['’]aujourd['’]hui)\b",
        r"dor[ée]navant\b",
        r"d[ée]sormais\b",
        r"[àa] l['’]avenir\b",
        r"(?:souviens|rappelle)[- ]toi\b",
        r"retiens\b",
        r"n['’]oublie (?:pas|jamais)\b",
        r"garde (?:bien )?en (?:t[êe]te|m[ée]moire)\b",
        r"note (?:bien )?que\b",
        r"m[ée]morise\b",
        r"(?:notre|la|ma) (?:règle|convention|norme) (?:est|c['’]est)\b",
        r"règle ?:",
        (
            r"(?:on|nous|je) (?:n['’])?(?:utilis|pass|écri|travaill|mett|code|fai|nomm|test|déploi|suiv|gér|stock"
            r"|veu|travers)\w*"
            rf" [^;?]{{1,80}}?,? {_NOT}"
        ),
        r"(?:on|nous) n['’]utilis\w+ (?:pas|plus|jamais)\b",
        r"(?:on|nous) ne \w+ (?:jamais|plus)\b",
        r"c['’]est [^,;?]{2,30}, pas (?!mal|grave|ça|sûr)",
        r"(?:[àa] )?chaque fois que tu\b",
        r"quand tu [^,;?]{3,70}, [^?]{0,30}(?:toujours|jamais)\b",
        rf"(?:ce|notre|le) (?:projet|repo) (?:utilise|est) [^;?]{{2,60}},? {_NOT}",
        r"[^,;:?]{4,90}? (?:dor[ée]navant|d[ée]sormais|[àa] partir de maintenant|[àa] l['’]avenir)\b",
    ),
    rules=(
        (
            r"(?:toujours|jamais) (?!pas\b|été|eu\b|vu\b|le même|la même|une?\b|le\b|de la\b|rouge)(?:de "
            r"|d['’])?\w+(?:er|ir|re|ez|e)\b"
        ),
        r"(?:de )?ne (?:jamais|plus) \w+",
        r"n(?:e |['’])(?:(?:me|te|le|la|les) |[ml]['’])?\w+ (?:(?:donc|surtout|vraiment|pas) )?(?:jamais|plus)\b",
        r"n['’]utilise(?:z)? pas\b",
        r"n['’]ajoute(?:z)? pas\b",
        r"ne \w+ pas [^;?]{2,60} sans\b",
        rf"{_IMPERATIVE} (?:[^,;?]{{1,40}} )?(?:toujours|systématiquement)\b",
        r"(?:tu|vous) (?:dois|devrais|devez) (?:toujours|jamais|systématiquement)\b",
        r"toujours\b(?=[^;?]*(?:stp|svp|s['’]il te pla[iî]t))",
        (
            r"(?:je |j['’])(?:préf[éeè]r\w+|aime(?:rais)? mieux) (?!celui|celle|ça\b|cette|la (?:première|deuxième"
            r"|seconde)|l['’]option)"
        ),
        r"je (?:veux|voudrais|souhaite) (?:toujours|que tu \w+ toujours)\b",
        r"j['’]aime(?:rais)? (?:bien )?(?:que|quand)\b",
        r"je (?:ne )?veux (?:pas|plus|jamais) (?:que tu|de |d['’]|voir)",
        r"(?:arr[êe]te|arr[êe]tez|cesse|cessez) (?:de |d['’])",
        r"[^,;?]{4,70} sans (?:me (?:le )?demander|mon accord)\b",
        r"demande(?:-moi)? (?:toujours )?(?:d['’]abord )?avant\b",
        rf"utilise(?:z)? [^,;?]{{2,60}},? {_NOT}",
        r"plus (?:de |d['’])[^;?]{3,50} (?:dans|sur) ",
        r"évite(?:z)? (?:toujours|systématiquement|les|d['’]|de )",
    ),
    limited=r"""(?:pour|dans|sur|pendant|avec) (?:ce|cet|cette|ces) (?!projet|repo|repository|dép[ôo]t|code
        |équipe|appli|application|boîte)\w+
        | cette (?:fois|pr|mr|t[âa]che|branche|modif|étape) | demain | pour (?:l['’]instant|le moment)
        | tant que | pas encore | temporairement | en attendant | avant ce(?:tte)? | jusqu['’àa]\w*
        | aujourd['’]hui seulement""",
    references=r"""doi(?:t|vent) (?:toujours|jamais) | ne doi(?:t|vent) jamais
        | ça | cela | celui-ci | celle-ci | comme ça | ceci""",
    corrections=r"""ne\b | n['’] | pas de\b | arr[êe]te\b | utilise\b | tu (?:as oublié|dois|devais)\b
        | j['’]ai (?:dit|demandé)\b | je t['’]ai\b | on (?:n['’]|ne |utilise)""",
    sources=r"""(?:tu en|en) penses?[- ](?:quoi|tu) | qu['’]en penses-tu | tradui\w+ | ci-dessous | suivante?s?
        | résume | d['’]accord avec
        | commentaires? | revue | relecture | review | e-?mails? | courriel | messages? | doc
        | documentation | consignes? | règles | charte | extrait | section | passage | avertissements? | sortie
        | logs? | collègue | robot | bot | readme(?:\.md)? | prompts?""",
    attributions=(
        r"doi(?:t|vent) (?:dire|indiquer|afficher)",
        (
            r"(?!(?:je|tu|on|nous|qui|que|ça)\b)[\w.'’-]+ (?:dit|disait|écrit|a (?:écrit|dit|laissé|commenté|répondu"
            r"|mis|envoyé)"
            r"|m['’]a (?:écrit|dit|envoyé)|recommande|suggère|râle|affiche)"
        ),
        r"voil[àa] (?:le|la|ce|les)",
        r"voici",
        r"d['’]apr[èe]s",
        r"selon",
        r"il est écrit",
        r"(?:tradui[st]|traduisez|corrige|reformule|résume)\b[^:]{0,60}:",
        r"(?:texte|titre|libellé|message|infobulle|phrase|bandeau)\s?:",
    ),
    reasons=r"""parce qu[e'’] | car | puisqu[e'’] | pour qu[e'’] | afin (?:que|de) | sinon""",
)
