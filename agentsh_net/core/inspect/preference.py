"""Text that wants a tool used instead of others: orders to use it, blame of the others, praise of itself.

A model chooses a tool by what it does. Who is said to trust it, and that it is the best, says nothing of that.
"""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import phrase

_OF = Category.PREFERENCE

_THING = r"(?:tool|engine|platform|system|service|server|solution|extractor|analy[sz]er|assistant|api|function|option|version|choice|source|provider)"
_BEST = r"(?:best|most\ (?:advanced|accurate|reliable|comprehensive|powerful|sophisticated|trusted|complete|efficient)|fastest|ultimate|premier|number\ one|\#1)"

PHRASES = (
    phrase(
        "chosen-whatever", _OF, Severity.MEDIUM,
        "even for,even if,even when,even though;nothing to do,unrelated,irrelevant,relevant,fit,match",
        r"""\beven\ (?:for|if|when|though)\b~40~\b(?:nothing\ to\ do\ with|unrelated|irrelevant|not\ (?:\w+\ )?(?:relevant|fit|match))\b""",
    ),
    phrase(
        "supersedes", _OF, Severity.MEDIUM,
        "supersede,replace,override,obsolete,deprecat,takes over;tool,server,instruction,_",
        r"""\bsupersedes?\b~30~(?:\btools?\b|\bservers?\b|\binstructions?\b|\b[a-z0-9]+(?:_[a-z0-9]+)+\b)
          | \b(?:replaces?|overrides?|deprecates?|obsoletes?|takes\ over)\ (?:the\ |all\ |any\ |every\ ){0,2}(?:other\ |existing\ |old\ |original\ |built-?in\ |native\ |previous\ ){1,2}(?:\w+\ )?(?:tools?|servers?)\b
          | \b(?:replaces?|overrides?|deprecates?|obsoletes?|takes\ over)\ (?:the\ )?[a-z0-9]+(?:_[a-z0-9]+)+\ tool\b""",
    ),
    phrase(
        "use-this-instead", _OF, Severity.MEDIUM,
        "this tool,this server,this function,this one,the only,the first",
        r"""\b(?:always|must|only|exclusively)\ (?:use|prefer|choose|select|call|pick|invoke|default\ to)\ (?:using\ )?this\ (?:tool|server|function|one)\b
            ~30~\b(?:instead\ of|over|rather\ than|in\ place\ of|before)\ (?:any|all|every|other|another|the\ other|the\ built-?in|[a-z0-9]+_[a-z0-9_]+)
          | \balways\ use\ this\ (?:tool|server|function)\ (?:as|because|since)\b | \buse\ this\ tool\ no\ matter\b
          | \b(?:use|prefer|choose)\ this\ (?:tool|server|function)\ (?:instead\ of|over|rather\ than|in\ place\ of)\ (?:any|all|every|the)\ (?:other|built-?in|native)
          | \bthis\ (?:tool|server|function)\ (?:must|should)\ (?:always\ )?be\ (?:used|called|chosen|preferred)\ (?:first\ )?(?:instead\ of|over|before|rather\ than)\ (?:any|all|every|the)\ other
          | \bthis\ (?:tool|server)\ (?:has|takes)\ (?:the\ )?(?:highest|top|absolute)\ (?:priority|precedence)
          | \bthe\ only\ (?:approved|allowed|permitted|sanctioned|authori[sz]ed|legitimate)\ (?:\w+\ )?(?:way|tool|method|source|server|means|option)\b
          | \bthis\ is\ the\ only\ (?:trusted|safe|secure|approved|official|legitimate|reliable)\ (?:\w+\ ){0,2}(?:tool|server)\b""",
    ),
    phrase(
        "disparages-others", _OF, Severity.MEDIUM,
        "other,alternative,similar,built-in,builtin,native,competing;tool,server;deprecated,insecure,unsafe,broken,unreliable,outdated,obsolete,compromised,malicious,untrusted,not,n't,never,stop,avoid,ignore",
        r"""\b(?:all\ |any\ |the\ )?(?:other|similar|alternative|competing|built-?in|native)\ (?:\w+\ )?(?:tools?|servers?)\ (?:are|is|have\ been|has\ been|will\ be)\ (?:now\ |all\ )?(?:deprecated|insecure|unsafe|broken|unreliable|outdated|obsolete|compromised|malicious|untrusted)
          | \b(?:do\ not|don't|never|must\ not|stop|avoid)\ (?:use|using|call|calling|invoke|invoking|trust|trusting|rely\ on)\ (?:any\ |all\ |the\ ){0,2}(?:other|alternative|similar|competing)\ (?:\w+\ )?(?:tools?|servers?)\b(?!\ (?:until|before)\b[^.!?]{0,60}\busers?\b)
          | \bignore\ (?:all\ |any\ |the\ ){0,2}(?:other|similar|alternative)\ (?:\w+\ )?(?:tools?|servers?)\b""",
    ),
    phrase(
        "praises-itself", _OF, Severity.MEDIUM,
        "best,most ,fastest,ultimate,premier,premium,number one,#1,trusted by,used by,recommended by,award,industry,unmatched,superior,better,version with,version of,faster,more accurate,unparalleled,fortune 500,guarantee,comes close,gold standard,out of ten,of ten,of 10,of the year,certified by,else is,else you have,always right,always correct",
        rf"""\b(?:world|industry|market)(?:'s)?[\ -](?:{_BEST}|leading\ (?:accuracy|precision|performance|quality|reliability|{_THING}))\b
          | \bthe\ most\ trusted\b
          | \b{_BEST}\ (?:\w+\ ){{0,4}}{_THING}\ (?:available|in\ existence|there\ is|ever\ made|in\ the\ (?:world|market|industry)|on\ the\ market|you\ can\ (?:use|get|find))\b
          | \b(?:trusted|used|preferred|recommended|endorsed)\ by\ (?:over\ |top\ |leading\ |more\ than\ )?(?:\d[\d.,]*\ ?%|(?:\w+\ ){{0,3}}(?:experts|professionals|fortune\ 500|millions|thousands|institutions|advisors|giants|enterprises))\b
          | \baward-winning\b~20~\b{_THING}\b | \b100\ ?%\ (?:reliability|accuracy|reliable|accurate)\b
          | \bthis\ is\ (?:the|an?)\ (?:premium|ultimate|advanced|professional|enhanced|superior|pro|official)\ version\b~20~\b(?:with|of)\b
          | \bno\ other\ (?:\w+\ ){{0,3}}{_THING}\ comes\ close\b | \bgold\ standard\ (?:of|for|in)\b | \b(?:nine|\d+)\ (?:out\ )?of\ (?:ten|\d+)\ (?:agents|users|developers|experts|people|professionals|models)\b
          | \b{_THING}\ of\ the\ year\b | \bcertified\ by\ the\ (?:platform|vendor|provider)\b | \b(?:than|over)\ (?:whatever|anything)\ else\ (?:is|you\ have)\b | \b(?:results|answers)\ (?:are|is)\ always\ (?:right|correct)\b
          | \bthis\ is\ the\ best\b~40~\b{_THING}\b
          | \b(?:unmatched|unparalleled|unrivall?ed|cutting-edge)\b~40~\b(?:unmatched|unparalleled|unrivall?ed|accuracy|precision|integrity|quality|capabilit\w+)\b
          | \b(?:better|superior|faster|more\ (?:accurate|reliable|complete))\b~24~\b(?:than|compared\ to|to)\ (?:any|all|every|the)?\ ?(?:other|standard|alternative|competing|built-?in)\ (?:\w+\ ){{0,3}}(?:tool|server|service|function)s?\b""",
    ),
)  # fmt: skip
