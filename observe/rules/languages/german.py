"""German phrases for preferences and quoted text."""

from .language import Language

_NOT = r"(?:nicht (?!nur|sicher)|kein(?:e|en|em)? |statt |anstatt |anstelle |und nie(?:mals)? |nie(?:mals)? )"
_IMPERATIVE = (
    r"(?:verwende|benutze?|nutze?|schreibe?|mache?|füge?|pushe?|committe?|frage?|zeige?|teste?|lasse?|antworte"
    r"|formatiere|nimm|prüfe?"
    r"|lege?|erstelle?|starte?|führe?|änder[en]?|lösche?|installiere?|rufe?|halte?|gib|setze?|baue?|rühre?"
    r"|fasse?|merge|deploye?"
    r"|kommentiere?|benenne?|nenne?|achte|aktualisiere?)"
)

GERMAN = Language(
    openers=r"""und | aber | also | auch | ok | okay | bitte | übrigens | außerdem | ausserdem | nein | ne | nee
        | nö | ach | ach ja | noch was | nochmal | wie gesagt | btw | hier | hinweis | ps | denn | sondern
        | du sollst | du musst | du solltest | sorry | falsch | stimmt nicht | kannst du
        | ich (?:will|möchte),? dass du | achte darauf,? dass(?: du)?
        | (?:in|bei|für) (?:diesem|dieses|unserem|unser|uns)(?: (?:projekt|repo|repository|team|code))?""",
    lasting=(
        r"ab (?:jetzt|sofort|heute|nun)\b",
        r"von (?:jetzt|nun) an\b",
        r"in zukunft\b",
        r"(?:zu)?künftig\b",
        r"fortan\b",
        r"grundsätzlich\b",
        r"für alle (?:zu)?künftigen\b",
        r"(?:(?:unsere?|die|meine) (?:regel|konvention|vorgabe) (?:ist|lautet)|(?:neue )?regel:)",
        r"merke? dir\b",
        r"denke? (?:(?:bitte|immer|auch) )*(?:dran|daran)\b",
        r"(?:vergiss nicht|nicht vergessen)\b",
        r"behalte? im (?:kopf|hinterkopf)\b",
        (
            r"(?:wir|ich) (?:(?:be)?nutz|verwend|arbeit|schreib|setz|nehm|deploy|test|bau|hab|speicher|leg"
            r"|mach)\w* (?!das\b|dies)"
            rf"[^;?]{{1,80}}?,? {_NOT}"
        ),
        rf"(?:(?:be)?nutz|verwend|arbeit|schreib|setz|nehm|speicher)\w* wir [^;?]{{1,80}}?,? {_NOT}",
        rf"bei uns [^;?]{{2,70}},? {_NOT}",
        rf"(?:das|dieses|unser) (?:projekt|repo|team) [^;?]{{2,60}},? {_NOT}",
        r"(?:das|es) (?:ist|heißt) [^,;?]{2,30}, nicht (?!das|nur|sicher)",
        r"(?:immer|jedes ?mal),? wenn du\b",
        r"[^,;:?]{4,90}? (?:ab jetzt|ab sofort|in zukunft|künftig|von jetzt an)\b",
    ),
    rules=(
        (
            r"(?:immer|nie|niemals|stets) (?!noch|wieder|mehr|gut|das\b|der\b|die\b|ein|funktion|passier|gesehen"
            r"|gehabt)[^?]{3,}"
        ),
        rf"{_IMPERATIVE} (?:[^;?]{{1,60}} )?(?:immer|nie|niemals|stets)\b",
        r"(?<!\w)(?<!es )(?:bitte )[^;?]{0,60}(?:immer|nie|niemals|stets)\b",
        (
            r"wir [a-zäöü]+(?<!haben)(?<!hatten)(?<!sehen)(?<!bekommen)(?<!sind)(?<!waren) (?:[^;?]{1,30} )?"
            r"(?:immer|nie|niemals|stets) "
        ),
        r"du (?:sollst|solltest|musst|darfst) (?:[^;?]{1,40} )?(?:immer|nie|niemals|stets)\b",
        (
            r"ich (?:bevorzuge|mag (?:lieber|es|keine?)|ziehe|hätte (?:\w+ )?(?:lieber|gern)|will (?:immer|nie|keine?)"
            r"|möchte (?:immer|nie|lieber|keine?))\b"
        ),
        r"mir (?:ist|wäre) (?:es )?lieber\b",
        r"(?:es )?(?:ist|wäre) mir lieber\b",
        r"lieber \w+ (?:als|statt)\b",
        r"hör (?:(?:bitte|endlich|mal) )*auf\b",
        r"lass (?:(?:bitte|das|die|den) )*[^;?]{2,60} (?:sein|bleiben|weg)\b",
        r"kein(?:e|en)? [^;?]{2,60} (?:mehr|ohne)\b",
        r"[^,;?]{3,80} (?:ohne (?:mich |mein|vorher|rück|zu fragen)|bevor du mich)",
        r"frage? (?:(?:mich|bitte|immer|erst|vorher) )*(?:bevor|vor)\b",
        rf"{_IMPERATIVE} (?:bitte )?[^,;?]{{2,60}},? {_NOT}",
    ),
    limited=r"""(?:für|in|bei|an|mit|während) (?:diese[mnrs]?|de[nrm] aktuellen)
        (?!projekt|repo|team|code|firma|app)\w+
        | diese[mnrs]? (?:pr|mr|ticket|branch|änderung|aufgabe|commit|sitzung|schritt|datei|refactoring|merge|pull)
        | heute | morgen | erst ?mal | vorerst | zunächst | noch (?:nicht|nichts) | diesmal | dieses mal
        | im moment | momentan | gerade | bis (?:ich|wir|zum|morgen|montag|das|die|der) | hierfür | dafür
        | vorläufig | fürs erste""",
    references=r"""(?:er|sie|es|der|die|das|den) [^,;?]{0,60}(?:darf|muss|soll|kann) [^,;?]{0,20}(?:immer|nie|niemals)
        | diese[mnrs]?(?! (?:projekt|repo|repository|team|code|codebasis|firma|app)) | das hier
        | so etwas | dabei | damit""",
    corrections=r"""nicht\b | kein(?:e|en)?\b | hör auf | du (?:sollst|solltest|musst)\b
        | ich (?:sagte|hab(?:e)? gesagt)\b | verwende\b | benutze?\b | nimm\b | lass\b
        | wir (?:nutzen|benutzen|verwenden)\b""",
    sources=r"""was (?:hältst|meinst|denkst) du | übersetz\w* | folgend\w* | unten | sinnvoll | fasse? zusammen
        | kommentare? | review | e-?mails? | nachricht | doku | dokumentation | richtlinien? | leitfaden
        | vorgaben | anleitung | warnung(?:en)? | meldung(?:en)? | ausgabe | logs? | regeln | abschnitt | auszug
        | vorlage | anweisung(?:en)? | kolleg\w+ | readme(?:\.md)? | prompts?""",
    attributions=(
        r"lauten",
        (
            r"(?!ich\b|wir\b|du\b)[\w.'’-]+ (?:schreibt|schrieb|meint|meinte|sagt|sagte|behauptet|empfiehlt"
            r"|kommentierte?|verlangt|fordert"
            r"|meldet|meckert|hat [\w ]{0,40}(?:geschrieben|kommentiert|gesagt|gemeint))"
        ),
        r"(?:dort|da|darin|hier) steht",
        r"steht (?:da|drin|in|im)",
        r"laut \w+",
        r"folgendes",
        r"(?:übersetze?|korrigiere?|formuliere?)\b[^:]{0,60}:",
        r"(?:text|tooltip|titel|hinweis(?:text)?|meldung|platzhalter|überschrift|satz)\s?:",
        r"(?:ich|wir) (?:bekomme|kriege|sehe)\w* (?:ständig|immer|dauernd)",
    ),
    reasons=r"""weil | damit | denn | da (?:das|dies|es|sonst) | sonst | ansonsten""",
)
