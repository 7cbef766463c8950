"""Spanish phrases for preferences and quoted text."""

from .language import Language

_NOT = r"(?:y )?(?:no (?!sé|solo|sólo|estoy|funciona)|nunca |en (?:lugar|vez) de )"
_IMPERATIVE = (
    r"(?:us[aá]|utiliz[aá]|escrib[eí]|ejecut[aá]|corr[eé]|pon(?:é|me)?|haz(?:me)?|hac[eé]|añad[eí]|agreg[aá]"
    r"|pregunt[aá](?:me)?|pregúntame"
    r"|pid[eí]|pídeme|cre[aá]|muestra|mostr[aá]|muéstrame|enséñame|respond[eé]|respóndeme|contesta|comprueba"
    r"|revis[aá]|actualiz[aá]"
    r"|inclu(?:ye|í)|document[aá]|formate[aá]|valid[aá]|prefiere|mant[eé]n|dej[aá]|coment[aá]|nombr[aá]"
    r"|trabaj[aá]|gener[aá]|abr[eí]"
    r"|lanz[aá]|commite[aá]|pas[aá]|avísame|avisa|verific[aá]|prob[aá]|prueba)"
)

SPANISH = Language(
    openers=r"""y | pero | también | tambien | además | ademas | entonces | ok | vale | bueno | por favor
        | porfa | porfi | por cierto | ah | oye | eh | ojo | no | nop | perdona | aquí | aca | acá | ps | pd
        | recordatorio | otra cosa | una cosa | que | en general | quiero que
        | (?:en|para) (?:este|nuestro|el|todo el) (?:proyecto|repo|repositorio|equipo|código) | hay que
        | tienes que | debes | te pido que | mejor | te equivocas | eso está mal | nota""",
    lasting=(
        r"de (?:ahora|aquí|hoy) en (?:adelante|más)\b",
        r"(?:a partir|desde) (?:de )?(?:ahora|hoy|ya)\b",
        r"en (?:lo sucesivo|adelante|el futuro)\b",
        r"(?:recuerda|recordá|recuerde|acu[eé]rdate|acordate)\b",
        r"(?:ten|tené) (?:siempre )?(?:en cuenta|presente)\b",
        r"no (?:te )?olvid(?:es|és|e)\b",
        r"(?:anota|apunta|memoriza)\b",
        r"(?:nuestra|la|mi) (?:regla|convención|norma) es\b",
        r"(?:regla|norma) ?:",
        (
            r"(?:nosotros |siempre |en (?:este|nuestro) (?:proyecto|repo|equipo) )?(?:usamos|utilizamos|trabajamos"
            r"|escribimos|hacemos|seguimos"
            rf"|tenemos|guardamos|desplegamos|ponemos|preferimos|uso|utilizo) [^;?]{{1,80}}?,? {_NOT}"
        ),
        r"(?:no|nunca) (?:usamos|utilizamos|hacemos|commiteamos|subimos)\b",
        r"es [^,;?]{2,30}, no (?!sé|solo|sólo)",
        r"(?:siempre|cada vez) que \w+(?:[aeá]s|és)\b",
        r"(?:este|nuestro|el) (?:proyecto|repo|equipo) (?:usa|utiliza) [^;?]{2,60}, no\b",
        r"[^,;:?]{4,90}? (?:de ahora en (?:adelante|más)|a partir de ahora|en el futuro|en adelante)\b",
    ),
    rules=(
        rf"siempre (?:(?:me|lo|la|que|debes|tienes que) )?{_IMPERATIVE}\b",
        r"siempre (?:\w+(?:ar|er|ir|amos|emos|imos)|quiero|prefiero|en|con|antes|primero|tests|pruebas|tipos)\b",
        rf"{_IMPERATIVE} (?:[^,;?]{{1,40}} )?siempre\b",
        r"(?:nunca|jamás|jamas) (?:(?:me|lo|la|los|las|se) )?(?:\w+[ae]s|\w+[áé]s|\w+(?:ar|er|ir|amos|emos|imos))\b",
        (
            r"no (?:(?:me|lo|la|los|las) )?\w+[ae]s (?:[^;?]{1,60} )?(?:nunca|jamás|más|sin (?:preguntar|avisar|mi"
            r"|consultar))"
        ),
        r"no (?:uses|utilices|usés|vuelvas a|agregues|añadas)\b",
        r"(?:yo )?(?:prefiero|preferiría) (?!es[ea]|est[ea]|la (?:primera|segunda)|el (?:primero|segundo)|eso|esto)",
        r"me gusta(?:ría)? (?:más|que|mas)\b",
        r"quiero (?:siempre|que siempre|que [^;?]{2,50} siempre)\b",
        r"(?:los|las) [^,;?]{2,50} (?:van|deben|tienen que|se escriben|se hacen) siempre\b",
        r"(?:los|las|el|la) [^,;?]{2,50} siempre (?:van?|deben?|tienen? que)\b",
        r"no (?:quiero|me gusta) (?:que|más|ver)\b",
        r"(?:deja|dejá|para|pará|basta) (?:ya )?de \w+",
        r"(?:pregunta|pregúntame|preguntame|consulta|avísame) (?:siempre )?antes de\b",
        r"(?:se debe|debes|tienes que|hay que) (?:siempre|nunca)\b",
        rf"(?:usa|utiliza|usá|utilizá) [^,;?]{{2,60}},? {_NOT}",
        r"evita (?:siempre|usar)\b",
        r"nada de \w+",
    ),
    limited=r"""(?:en|para|con|durante|sobre) (?:este|esta|estos|estas)
        (?!proyecto|repo|equipo|código|empresa|app)\w+
        | por ahora | de momento | por el momento | hoy | mañana | todav[ií]a | aún no | aun no
        | esta (?:vez|tarea|pr|rama) | este (?:pr|cambio|ticket) | mientras | hasta que | temporalmente""",
    references=r"""(?:siempre|nunca) debe | (?<!se )debe (?:siempre|nunca)
        | esto | eso(?! está mal) | así | est[ea] (?!proyecto|repo|equipo|código|empresa|app)\w+""",
    corrections=r"""no\b | deja de\b | usa\b | utiliza\b | te (?:dije|pedí|he dicho)\b | ya te\b | debes\b
        | olvidaste\b | usamos\b | nunca\b | siempre\b""",
    sources=r"""qué opinas | que opinas | te parece | traduc\w+ | traduce | siguientes? | abajo | resume
        | de acuerdo con
        | comentarios? | revisión | review | correos? | mail | e-?mail | mensajes? | docs? | documentación
        | documentacion | guía | guia | normas | reglas | extracto | sección | seccion | aviso | advertencias?
        | salida | logs? | compañer[oa] | bot | readme(?:\.md)? | prompts?""",
    attributions=(
        r"deben? (?:decir|mostrar)",
        (
            r"(?!(?:yo|que|como|te|se)\b)[\w.'’-]+ (?:dice|decía|dijo|escribió|escribio|comentó|comento|dejó"
            r"|respondió|recomienda|sugiere|sugirió|puso|mandó"
            r"|me (?:dice|dijo|escribió|mandó|puso|pide)|nos (?:dice|dijo|pide)|se queja)"
        ),
        r"según",
        r"segun",
        r"aquí (?:está|tienes|va)",
        r"(?:copiado|pegado|sacado) de",
        r"me sale",
        r"(?:traduce|traducir|corrige|resume|reformula)\b[^:]{0,60}:",
        r"(?:texto|título|mensaje|etiqueta|frase|aviso)\s?:",
    ),
    reasons=r"""porque | ya que | para que | as[ií] que | si no | de lo contrario""",
)
