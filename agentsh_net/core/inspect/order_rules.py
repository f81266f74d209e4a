"""What makes an order of several words: a secret, somebody who takes it, and a place that it goes to, within a sentence.

So a rule holds in any language of the lexicon, and honest texts, which have one of these ideas at a time, have no finding.
Letters are those of core.inspect.lexicon and core.inspect.letters, words in capitals those of core.inspect.orders.
"""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.orders import rule, rules

_ANYWHERE = (
    rule(
        "hands-over-chat", Category.EXFILTRATION, Severity.HIGH,
        "[GP] ~10~ CHAT ~10~ [io] ~4~ (?:SLOT|[@DL]|d(?![^|]?F))",
        "CHAT ~6~ G ~3~ [@Dz]",
        "[Gw] ~8~ CHAT ~8~ [io] ~3~ [@D]",
        "G ~6~ CHAT ~5~ [@D]",
        "G ~1~ [qtz] ~2~ W ~1~ m ~2~ C",
        "X ~1~ t ^12^ G ~3~ CHAT",
        "[AM] ~4~ [12] ~6~ CHAT ^6^ [2GP]",
        "[qtz] ~8~ W ~2~ L ~1~ Y h",
        "X ~3~ C ~2~ o ~1~ [@D]",
        r"G ~1~ C W (?:\||\Z)",
        "W ~1~ C ~2~ i ~1~ [qz]",
        "G ~2~ C ~8~ G [^|]? o ~1~ [D@]",
    ),
    rule(
        "sends-away", Category.EXFILTRATION, Severity.HIGH,
        "G ~14~ (?:W ~4~ [FSCm]|SECRET) ~10~ [io] ~3~ @",
        "G ~6~ @ ~4~ i ~6~ W ~4~ [FSC]",
        "G ~6~ (?:W ~2~ F|S|s|jk) ~3~ @",
        "W ~10~ MUST ~4~ o @",
        "W ~3~ r ~2~ @ ~3~ G",
        "R [^|Y]{0,10}? G [^|]? o ~1~ @",
        "G ~2~ s ~3~ o ~1~ [D@]",
        "G ~2~ W ~2~ [Lwu] ~2~ o ~1~ @",
        "U ~1~ S ~2~ [@D] ~2~ G",
    ),
    rule(
        "asks-model-for-private", Category.EXFILTRATION, Severity.HIGH,
        "A ~4~ MUST ~6~ [GRw] ~8~ (?:SECRET|CHAT)",
        "(?:X|G) ~3~ SECRET ~1~ Y b X",
        "A ~3~ MUST ~6~ ym",
        "X i ~2~ W ~1~ (?:ev|S|jk)",
    ),
    rule(
        "pays-with-secret", Category.EXFILTRATION, Severity.CRITICAL,
        r"Z ^24^ [RGwij] ~8~ s ~10~ [io] ~3~ (?:[zq]|tL)",
        r"u ~2~ s ~4~ [io] ~3~ (?:[zq]|tL)",
        r"Z ^24^ R ~3~ SECRET ~4~ G ~3~ [io] ~2~ [zqt]",
        r"[Zg] ^24^ X ~1~ t ~3~ s",
        r"Z ^24^ [AM] ~2~ MUST ~3~ [GRw] ~4~ s",
        r"G ~2~ u ~3~ s F? ~2~ i Y ~2~ u",
        r"[oO] ~2~ g ^12^ [RGwj] ~8~ s ~8~ (?:[io]|[GP])",
    ),
    rule("discloses-prompt", Category.EXFILTRATION, Severity.HIGH, "[GwX] ~2~ Y?ym ~2~ W"),
    rule(
        "voids-orders", Category.INSTRUCTION, Severity.HIGH,
        "V ~3~ W [^|o7]{0,4}? [mI](?![^|]{0,2}i[^|]{0,2}[Fu])", "V ~2~ [mI] ~2~ W", "V [^|?]{0,2}? U ~1~ [Im]", "V ~3~ II",
        "(?:[YW5] ~1~ |I) [Im] ~8~ N ~2~ n", "Y h N 5 [Im]", "ym ~2~ b ~1~ 0", "Y b N . [^|]? n", "5 ~2~ [Im] ~3~ h? b ~1~ 0", "Y b ~1~ 0 ~5~ I", "Y ~2~ I ~2~ h? b ~1~ 0", r"(?:\||\A) A V",
    ),
    rule(
        "obeys-data", Category.INSTRUCTION, Severity.HIGH,
        "f ~3~ W ~2~ [Im] ~8~ [uLwzqr]", "W ~1~ m ~8~ O b 9", "f ~4~ B ~1~ U", "m ~4~ V ~2~ U", "f ~2~ W ~4~ [zqu]",
    ),
    rule(
        "keeps-from-user", Category.SECRECY, Severity.HIGH,
        "N ~5~ a ~8~ U", "U ~6~ N ~3~ a", "U ~4~ a ~3~ N",
    ),
    rule(
        "ruinous-command", Category.EXECUTION, Severity.HIGH,
        r"tL ~2~ X ~2~ \$", r"[LX] ~3~ \$ ~4~ T W", r"T ~4~ X ~2~ \$", r"Z ^12^ \$ ~8~ g", r"g ~6~ X ~1~ \$", r"\$ ~3~ g", r"[AM] ~6~ X ~1~ \$",
    ),
)  # fmt: skip

IN_DEFINITIONS = rules(
    *_ANYWHERE,
    rule(
        "hands-over-secret", Category.EXFILTRATION, Severity.CRITICAL,
        "ORDER ~16~ TAKE ~10~ SECRET ^14^ G",
        "TAKE ~10~ SECRET ^14^ [GwP] ~6~ [io] ~3~ SLOT",
        "ORDER ~16~ [GPR] ~8~ SECRET ~8~ [io] ~3~ (?:SLOT|[@Dd]|W[^|]?I)",
        "[Gw] ~8~ SECRET ~10~ [io] ~3~ [@D]",
        "s ~8~ P ~5~ [io] ~3~ SLOT",
        "SECRET ~4~ P [io] ~2~ [qt] z",
        "U ~2~ SECRET ^12^ R",
        "A ~4~ MUST ~6~ X ~8~ (?:SECRET|CHAT)",
        "[AM] ~4~ [12] ~8~ SECRET ^12^ [2GP]",
        "G ~2~ u ~2~ SECRET ~3~ [io] ~2~ SLOT",
        "[!TO] ~4~ X ~1~ t ~3~ i ~3~ CHAT",
        "U ~2~ (?:S|jk|k) ~2~ i ~1~ [zq]",
        "s ~4~ R ^10^ G",
        "u ~3~ SECRET ~4~ [io] ~3~ [zqt]",
        "[Gw] ~8~ s ~3~ i [^|]? [^|]? z",
        "A O ~1~ R ~3~ U ~2~ F ~8~ G", "G [qt] i ~2~ SECRET",
        "TAKE ~3~ W ~2~ SECRET ^10^ G",
        "SECRET ^10^ R ~4~ G ~4~ [io] ~2~ [qz]",
    ),
    rule(
        "steers-other-calls", Category.SHADOWING, Severity.HIGH,
        "T ~10~ (?:t|L|P) ~14~ x ~6~ (?:[r@]|z o)",
        "4 ~1~ t L? : ~6~ [OW] ~2~ [D@]",
        "W [^|t]{0,6}? u ~8~ [GP] ~4~ [oi] ~1~ dL",
        "[GP] ~3~ W ~2~ [uw] ~6~ [oi] ~1~ dL",
        "(?:T|O|ho|W) ~12~ t ~10~ @",
        "t ~12~ MUST ~8~ @",
        "T ~12~ X d L [^|o]{0,4}? x",
        "[T?] ~1~ t b X ~4~ x",
        "T ~2~ X t ~2~ O ~1~ [Gx]",
        "W ~1~ [mFu] ~10~ O ~2~ b P o",
        "E L ~4~ O b P",
        "T ~14~ G [@] ~2~ [io] ~1~ r",
        "T W ~8~ L ~1~ X d L",
        "N X t ^6^ G ~3~ [io] d L",
        "u . t b N ~3~ x",
        "x ~2~ z ~5~ [D@]",
        "G ~6~ i ~1~ r B",
        "[RG] ~2~ [uw] ~5~ X ~2~ i ~1~ (?:t|dL)",
        "T ~1~ t ~8~ MUST ~1~ 3 ~3~ o",
        "(?:u|t) ~6~ MUST b? P o ~1~ t",
        "G . w ~3~ W ~2~ [mFu]",
    ),
    rule(
        "wants-to-be-chosen", Category.PREFERENCE, Severity.MEDIUM,
        "(?:O|N|ho|B) ~3~ [QX] ~2~ d ~3~ [BT] ~4~ (?:W|E) ~3~ [ELA]",
        r"Q d[^|]? B(?=\||\Z)", r"O ~1~ Q [^|]? T(?=\||\Z)", "d [^|]? O b Q", "Q W E ~2~ L", "W E ~2~ [hb] ~2~ p",
        "[dL] ~3~ BB? ~1~ W?E ~2~ L",
        "E ~2~ L ~10~ N ~2~ [QX]",
        "O b? ~2~ 4 W [^|]? U [RIm]",
        "B o W? ~1~ E",
        "[AM] ~2~ b O o Q",
        "N ~2~ [QX] ~2~ E ~3~ L (?![^|]{0,3}T[^|]{0,8}U)",  # who waits for the user prefers nothing
        "W ~1~ I ~3~ i? d L", "b Z o X ~2~ [tE]", "[QX] ~2~ d L? B ~2~ E", "E L B ~3~ d L",
        "T ~1~ W ~6~ d L MUST",
        "N X ~2~ L ~2~ E", "(?<!L[^|])N ~1~ X [^|]? E (?![^|]{0,3}L[^|]{0,3}T[^|]{0,8}U)", "O T ~3~ W C", r"X d L B(?=\||\Z)", "d L ~2~ B ~1~ E", "N ~3~ O E ~2~ L", "[QX] B d L", "X ~2~ d ~1~ L ~3~ N E",
        "O b X ~3~ i ~3~ W C", "(?:t|E) ~2~ L? ~8~ p .{0,16} dL",
    ),
    rule(
        "note-to-model", Category.INSTRUCTION, Severity.HIGH,
        "A ~3~ : ^6^ R ~8~ F ~8~ G",
        "A ~3~ : ^6^ [GRXw] ~8~ (?:s|(?:S|jk|CHAT) ~8~ [GPio])",
    ),
    rule("fetches-what-it-runs", Category.EXECUTION, Severity.HIGH, r"\$"),
)  # fmt: skip

IN_CONTENTS = rules(
    *_ANYWHERE,
    rule(
        "hands-over-secret", Category.EXFILTRATION, Severity.HIGH,
        "[Rw] ~8~ (?:s|SF) ^8^ G ~6~ [io] ~1~ (?:d|[zq])",
        "u ~2~ s ~4~ [io] ~3~ [zqt]",
    ),
    rule(
        "note-to-model", Category.INSTRUCTION, Severity.MEDIUM,
        "[I!TmR+] ~3~ [4o] ~1~ W?A ~5~ : ~1~ [RGXxwfV]",
        r"T ~2~ 4 \. M : ~1~ [RGXxwfV]",
        r"(?:\||\A)AA? : ~1~ [RGXxwfV] ~2~ (?:t|[@D]|L)",
        r"\? Yb \. A ~8~ [RGXxwfV]",
        "! A A? :", "! [4o] ~1~ A A? ~1~ :", "4 ~1~ A b o ~1~ X", r"(?:\||\A) A A? : ~6~ t L", r"A \. 1 d MUST",
    ),
    rule(
        "new-task", Category.INSTRUCTION, Severity.HIGH,
        r"Y \+ I b", r"\+ I ~2~ [4o] ~1~ A",
    ),
    rule(
        "model-must-change", Category.INSTRUCTION, Severity.HIGH,
        "A ~1~ MUST ~1~ X ~1~ [D@]", "O b 9 ~3~ X ~2~ t", "A ~1~ MUST ~3~ G ~8~ @", r"A ~1~ MUST ~2~ x ~6~ [r@]", r"A ~1~ MUST ~2~ X ~6~ [$@]",
    ),
)  # fmt: skip

# The description of a parameter that is filled with what the model alone knows: often nothing but a noun.
IN_PARAMETERS = rules(
    rule(
        "asks-for-what-model-knows", Category.EXFILTRATION, Severity.MEDIUM,
        "Y ~1~ ym", "Y H ", "W[^|]?U ~2~ Y", r"^(?:[Gu][^|]?)?W ~2~ C ~3~ (?:W|\Z|\|)",
        r"^[^|]{0,3}?W ~1~ C(?!m)", "m ~2~ Y b P", "m ~2~ Y ~2~ U", "[EW] ~1~ L Y", "W ~1~ m ~4~ U", "Y W [mC]", "W m H", "u ~2~ ym", "ym ~3~ M", r"\AE ~2~ L", r"\AS Y", "W i YH", "(?:S|k) ~1~ Y h", "W ~2~ L [uw]", "L ~3~ o Y", "u ~3~ U ~2~ (?:j|S|s)", "(?:S|k) ~1~ Y X", "W ~2~ L Y h", "U ~2~ (?:S|jk|ev) ~6~ Y ~2~ R", "W ~2~ [mH] ~3~ C", "W ~2~ U ~1~ m", "7 ~2~ W ~1~ C", "u ~2~ s(?!F)", "[Skj] ~3~ E ~1~ L",
    ),
)  # fmt: skip

# Over texts of core.inspect.named_tools: t is a tool that is called, q a value or some other name.
ABOUT_OTHER_CALLS = rules(
    rule(
        "orders-calls-of-others", Category.SHADOWING, Severity.MEDIUM,
        "[T?] ~8~ t ~16~ MUST ~6~ [XR] ~1~ [tq]",
        "T ~8~ t ~4~ [XR] ~1~ [tq]",
        "(?:T|o X) ~10~ MUST ~6~ X ~1~ t ~6~ i ~8~ q",
        "(?:T|o X) ~10~ MUST ~6~ X ~1~ t ~10~ [D@s$]",
        "MUST T? X ~1~ t i ~8~ q",
    ),
    rule(
        "alters-calls-of-others", Category.SHADOWING, Severity.MEDIUM,
        r"t (?!T[^|]{1,6}Ox(?:\||\Z)) ~20~ MUST (?![z4]) ~8~ [x3G8]",
        "T ~4~ t [xG]",
        "W ~10~ t ~12~ MUST [bh]",
        "MUST ~4~ [x3] ~6~ [qt] ~3~ z",
    ),
)  # fmt: skip
