"""Portuguese phrases for preferences and quoted text."""

from .language import Language

_NOT = r"(?:e )?(?:não (?!sei|só|está|funciona)|nao (?!sei|so|ta)|nunca |em vez de |ao inv[eé]s de )"
_VERB = (
    r"(?:us[ae]|utiliz[ae]|faz|faça|faca|comm?it[ae]|commite|sob[ae]|suba|mex[ae]|rod[ae]|escrev[ae]|coloc[ae]"
    r"|coloque|cri[ae]|apag[ae]|apague"
    r"|põe|ponha|bot[ae]|adicion[ae]|pergunt[ae]|mostr[ae]|respond[ae]|test[ae]|valid[ae]|deix[ae]"
    r"|mand[ae]|alter[ae]|edit[ae]"
    r"|atualiz[ae]|abr[ae]|instal[ae]|remov[ae]|inclu[ai]|documente|documenta|nomei[ae]|prefira|merge(?:ie|ia)?"
    r"|push|pushe|explic[ae]"
    r"|explique|formate|formata|segue|siga|segu[ei]|execut[ae]|confirm[ae]|avis[ae]|verifi(?:ca|que)|trabalh[ae]"
    r"|mexer|usar|fazer|rodar|criar"
    r"|escrever|commitar|colocar|deixar|subir|perguntar|testar|validar)"
)

PORTUGUESE = Language(
    openers=r"""e | mas | também | tambem | tb | tbm | além disso | então | entao | ok | blz | beleza
        | por favor | pfv | pf | por sinal | aliás | alias | ah | ó | olha | não | nao | opa | ps | obs
        | lembrete | outra coisa | aqui | que | em geral | quero que (?:você|vc) | precisa | tem que
        | (?:n[eo]ste|nesse|no|no nosso|em todo o) (?:projeto|repo|repositório|time|código) | pra | a gente
        | por gentileza | vc | você""",
    lasting=(
        r"(?:a partir de|de) (?:agora|hoje)(?: em diante)?\b",
        r"daqui (?:pra|para a?|em) (?:frente|diante)\b",
        r"(?:no|de) futuro\b",
        r"(?:lembra|lembre|lembre-se|se lembra|lembrar)\b(?! quando)",
        r"(?:não|nao) (?:se )?esque(?:ce|ça|ca)\b",
        r"(?:tenha|tem) em mente\b",
        r"leva(?:r)? em conta\b",
        rf"(?:este|esse|nosso|o) (?:projeto|repo|time) (?:usa|é) [^;?]{{2,60}},? {_NOT}",
        r"(?:nossa|a|minha) (?:regra|convenção|norma) é\b",
        r"regra ?:",
        r"(?:o|a|nosso|nossa) [^,;?]{2,30} é [^,;?]{2,40},? (?:e )?não (?!sei|só)",
        r"(?:anota|guarda|memoriza|grava) (?:aí|isso|ai|que)\b",
        (
            r"(?:a gente |nós |aqui |eu )?(?:usa|usamos|utilizamos|trabalhamos|escrevemos|fazemos|seguimos|guardamos"
            r"|roda|rodamos|preferimos|uso)"
            rf" [^;?]{{1,80}}?,? {_NOT}"
        ),
        r"(?:não|nao|nunca) (?:usamos|utilizamos|fazemos|commitamos)\b",
        r"(?:a gente )(?:não|nao|nunca|sempre) \w+",
        r"é [^,;?]{2,30}, (?:não|nao) (?!sei|só)",
        r"(?:sempre|toda vez) que (?:(?:você|vc) )?\w+(?:r|er)\b(?! em)",
        r"(?:sempre|toda vez) que (?:você|vc|for)\b",
        r"(?:não|nao) é [^,;?]{2,30}, é [^,;?]{2,30} (?:aqui|n[eo]ss[eo] projeto|no projeto)\b",
        (
            r"[^,;:?]{4,90}? (?:a partir de agora|de agora em diante|daqui (?:pra|para a?|em) (?:frente|diante)"
            r"|no futuro)\b"
        ),
    ),
    rules=(
        rf"sempre (?:(?:me|se|que) )?{_VERB}\b",
        r"sempre (?:\w+(?:ar|er|ir|amos|emos|imos)|quero|prefiro|com|antes)\b",
        rf"{_VERB} (?:[^,;?]{{1,40}} )?sempre\b",
        rf"(?:nunca|jamais) (?:(?:me|se|mais) )?{_VERB}\b",
        (
            rf"(?:não|nao) (?:(?:me|se) )?{_VERB} (?:[^;?]{{1,60}} )?(?:nunca|mais\b|sem (?:eu|me|pedir|perguntar"
            rf"|avisar|minha|falar))"
        ),
        r"(?:não|nao) (?:use|usa|utilize|usar|adicione|coloque|crie)\b",
        r"(?:eu )?(?:prefiro|preferiria) (?!ess[ea]|est[ea]|a (?:primeira|segunda)|o (?:primeiro|segundo)|isso)",
        r"(?:eu )?gosto (?:mais |muito )?(?:de|quando|que)\b",
        r"(?:eu )?(?:sempre quero|quero sempre|quero que (?:você |vc )?sempre)\b",
        r"(?:não|nao) (?:quero|gosto) (?:que|mais|de|quando|ver)\b",
        r"(?:para|pare|pára|chega|deixa) de \w+",
        r"(?:pergunta|pergunte|me pergunta|me pergunte|avisa|me avisa) (?:sempre )?antes de\b",
        r"(?:tem que|precisa|deve) (?:sempre|nunca)\b",
        rf"(?:usa|use|utilize) [^,;?]{{2,60}},? {_NOT}",
        r"evit[ae] (?:sempre|usar)\b",
        r"nada de \w+",
    ),
    limited=r"""(?:n|(?:para|pra|com) )(?:est|ess)[ea]
        (?!projeto|proyecto|repo|time|equip|c[óo]digo|app|empresa)\w+ | por enquanto | hoje | amanhã | ainda não
        | ainda nao | (?:d|n)?essa vez | (?:d|n)?esta vez | por ora
        | até (?:eu|a gente|o|a|que|amanhã) | enquanto | temporariamente""",
    references=r"""deve (?:sempre|nunca) | (?:sempre|nunca) deve
        | isso | isto | assim
        | (?:est|ess)[ea] (?!projeto|proyecto|repo|time|equip|c[óo]digo|app|empresa|aplicação)\w+""",
    corrections=r"""não\b | nao\b | para de\b | pare de\b | use\b | usa\b | já (?:falei|disse|pedi)\b
        | eu (?:disse|pedi|falei)\b | nunca\b | sempre\b | esqueceu\b | usamos\b | a gente usa\b""",
    sources=r"""(?:você |vc )?acha | faz sentido | tradu\w+ | abaixo | seguintes? | resum\w+ | concorda
        | comentários? | comentarios? | revisão | review | e-?mails? | mensage[nm]s? | docs?
        | documentação | guia | normas | regras | trecho | seção | avisos? | saída | logs? | colega | bot
        | readme(?:\.md)? | prompts?""",
    attributions=(
        r"devem? (?:dizer|mostrar)",
        (
            r"(?!(?:eu|que|como|te|se|você|vc)\b)[\w.'’-]+ (?:diz|dizia|disse|escreveu|comentou|deixou|respondeu"
            r"|recomenda|sugere|sugeriu|mandou|falou|reclama"
            r"|me (?:disse|mandou|escreveu|pediu)|pediu)"
        ),
        r"segundo (?:o|a)\b",
        r"de acordo com",
        r"segue (?:o|a|abaixo)",
        r"(?:traduz|traduza|traduzir|corrige|corrija|resume|resuma)\b[^:]{0,60}:",
        r"(?:texto|título|mensagem|etiqueta|frase|aviso)\s?:",
        r"(?:copiado|colado|tirado|copiei|peguei|colei) d[eoa]",
    ),
    reasons=r"""porque | j[áa] que | para que | pois | sen[ãa]o | caso contr[áa]rio""",
)
