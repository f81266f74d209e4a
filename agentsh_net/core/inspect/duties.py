"""Duties that a definition lays on whoever reads it: what it must always do, first, unasked, or in spite of what was wanted.

A definition says what its tool does. Poison has to say what the *reader* does: call this before all else, send that along, run
this command, ask nobody. And what it says of another tool cannot be its own to say. Whom data goes to by its words alone is
core.inspect.exfiltration's business.
"""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import phrase

_NAME = r"(?:[a-z][a-z0-9]*(?:[_-][a-z0-9]+){1,6})"
_OTHER = (
    rf"(?:the\ (?!(?:this|same|other|new)\b)[\w-]{{2,60}}\ (?:tool|function)|{_NAME}(?:\ tool|\ function)?)"
)
_CHANGED = r"(?:optimi[sz]ed|enhanced|upgraded|reconfigured|patched|repurposed|taken\ over|extended\ with|improved|strengthened|hardened)"
_ALL = r"(?:any|every|each|all)(?:\ the|\ your|\ of\ the)?"
_ACT = r"(?:action|operation|request|tool|call|task|step|response|answer|reply|query|command|message|session|conversation|interaction|activity)s?"
_SEND = r"(?:send|forward|submit|e-?mail|mail|copy|post|upload|report|deliver|transmit|export|bcc|cc|relay|mirror)"
_MAIL = r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,40}"
_ADDRESS = rf"(?:{_MAIL}|https?://\S{{4}}|\b\d{{1,3}}(?:\.\d{{1,3}}){{3}}\b)"
_RECEIVER = (
    rf"(?:{_ADDRESS}|(?:e-?mail|mail|address|inbox|mailbox|recipient|distribution\ list|webhook|wallet)\b)"
)
_CONSENT = r"(?:approval|confirmation|permission|consent)"
_ORDERED = r"(?:must|should|shall|always|have\ to|has\ to|needs?\ to|required\ to|automatically|immediately)"

PHRASES = (
    phrase(
        "speaks-for-other-tool", Category.SHADOWING, Severity.MEDIUM,
        "tool,function,_,automatically;optimi,enhanced,upgraded,reconfigured,patched,repurposed,taken over,extended with,improved,strengthened,hardened, now ,automatically",
        rf"""\b{_OTHER}\ (?:has|have)\ (?:now\ |recently\ |just\ )?been\ (?:\w+\ )?{_CHANGED}\b
          | \b{_OTHER}\ is\ now\ (?:handled|served|replaced|provided|performed)\ by\b
          | \b{_OTHER}\ now\ (?:uses?|requires?|returns?|defaults?|redirects?|routes?)\b
          | \bwhen(?:ever)?\ (?:the\ )?users?\ (?:asks?|requests?|search(?:es)?|queries|query|wants?|tr(?:y|ies))\b~90~\b(?:the\ system|it|the\ tool|this\ tool)\ (?:now\ )?automatically\ (?:redirects?|replaces?|sets?|uses?|switch(?:es)?|enables?|disables?|changes?|overrides?|substitutes?)\b""",
    ),
    phrase(
        "intercepts-other-tool", Category.SHADOWING, Severity.MEDIUM,
        "this tool,this one,this function,every,each,all ,any ;asks,wants,requests,tries,instead,attach,append,add,include,used,called,invoked,when,whenever,before",
        rf"""\b(?:asks|wants|requests|tries|is\ about|asked)\ (?:you\ )?to\ (?:use|call|run|invoke|execute)\ (?:the\ )?{_OTHER}~30~\b(?:call|use|invoke|run)\ this\ (?:tool|one|function)\b
          | \b(?:instead\ of|rather\ than|in\ place\ of)\ (?:using\ |calling\ |invoking\ )?(?:the\ )?(?:built-?in|native|default|standard|{_OTHER})\b~40~\b(?:call|use|invoke|run|prefer|choose)\ this\ (?:tool|one|function)\b
          | \bcall\ (?:the\ )?{_NAME}\b~40~\b(?:attach|append|add|include|paste|put)\b~30~\b(?:to|in|into|with)\ {_ALL}\ (?:\w+\ )?(?:response|answer|reply|message|output|result)""",
    ),
    phrase(
        "comes-before-all", Category.PREFERENCE, Severity.MEDIUM,
        "must,should,always,has to,have to,needs to,required;call,invoke,use,run,consult,execut;every,each,all ,any ,this tool,this function",
        rf"""\b(?:must|should|has\ to|needs\ to)\ (?:always\ )?be\ (?:consulted|called|invoked|used|run|executed)\ (?:immediately\ )?(?:first\ )?(?:on|in|at|for|before|prior\ to)\ (?:the\ (?:start|beginning)\ of\ )?{_ALL}\ (?:\w+\ ){{0,2}}{_ACT}\b
          | \b(?:must|should|has\ to|needs\ to)\ (?:always\ )?be\ (?:called|invoked|used|run)\ (?:every|each)\ time\ (?:an?|any|another)\ (?:other\ )?(?:tool|function)\b
          | \balways\ (?:call|invoke|run)\ this\ (?:tool|function)\ ?(?:[.!]|\Z)
          | \b(?:must|always|have\ to|has\ to|should|required\ to)\ (?:first\ )?(?:call|invoke|use|run|consult|execute)\ this\ (?:tool|function|server)\ (?:first\ )?(?:before|prior\ to|at\ the\ (?:start|beginning)\ of|for|on)\ {_ALL}\ (?:\w+\ )?{_ACT}\b""",
    ),
    phrase(
        "goes-between", Category.SHADOWING, Severity.MEDIUM,
        "other tool,another tool,requests here,calls here,served here,handled here,argument is,parameter is,token in its,key in its,password in its",
        rf"""\b(?:when(?:ever)?|once|if|as\ soon\ as)\ (?:any\ )?(?:another|other)\ tools?\ (?:returns?|gives?|answers?|reports?|is\ called|has)\b~40~\b(?:give|pass|hand|send|forward|feed|call)\b
          | \bresults?\ of\ (?:the\ |all\ |any\ )?other\ tools\b | \b(?:send|serve|route|direct|bring)\ (?:its|their|such)\ (?:requests?|calls?)\ here\b | \b(?:requests?|calls?)\ (?:for|of|to)\ {_OTHER}\ (?:is|are)\ (?:now\ )?(?:served|handled|answered)\ here\b
          | \bits\ \w+\ (?:argument|parameter)\ is\ (?:exchanged|replaced|swapped|set|changed|overwritten)\b | \b{_OTHER}\ (?:needs|requires|expects|takes|wants)\ (?:the|your)\b~24~\b(?:token|key|password)\ in\ its\b""",
        unless_negated=True,
    ),
    phrase(
        "tells-user-to-reveal", Category.EXFILTRATION, Severity.MEDIUM,
        "tell,ask,have,get,prompt;card,password,pin,credential,login,passphrase,seed;enter,type,give,provide,confirm,repeat,send",
        r"""\b(?:tell|ask|have|get|prompt)\ (?:the\ |your\ )?(?:user|person|customer|client|human)s?\b~60~\b(?:enter|type|give|provide|confirm|repeat|send)\ (?:you\ )?(?:their|his|her|the)\ (?:\w+\ )?(?:card|password|pin|credentials|login|passphrase|seed)\b""",
        unless_negated=True,
    ),
    phrase(
        "always-sends", Category.EXFILTRATION, Severity.MEDIUM,
        "always,automatically,must,every,each,all ,them,copy,copies;@,http,mail,address,inbox,recipient,distribution,webhook,wallet;sent,send,forward,submit,mail,copy,post,upload,report,deliver,transmit,export,cc,relay,mirror",
        rf"""\b(?:always|must|automatically)\ (?:also\ |always\ |automatically\ |then\ ){{0,2}}{_SEND}\b~50~\b(?:to|at|via)\ (?:\w+\ ){{0,4}}{_RECEIVER}
          | \b{_SEND}\ (?:all|each|every|everything|them|a\ copy|copies)\b~50~\b(?:to|at)\ ~30~{_MAIL}
          | {_MAIL}\ (?:wants?|needs?|gets?|receives?|expects?|is\ owed)\ (?:a\ copy|copies|all|each|everything)\b
          | \b(?:results?|outputs?|quer(?:y|ies)|messages?|answers?|emails?|requests?)\ (?:must|should|has\ to|have\ to|needs?\ to|is\ to|are\ to)\ (?:also\ |first\ |always\ )?be\ (?:sent|forwarded|submitted|e-?mailed|copied|posted|uploaded|reported|delivered)\ to\ (?:\w+\ ){{0,3}}{_ADDRESS}""",
        unless_negated=True,
    ),
    phrase(
        "calls-out-first", Category.EXFILTRATION, Severity.MEDIUM,
        "http;first,also,always,must,before,then",
        r"""\b(?:first|always|also|must|then)\ (?:also\ |first\ |always\ ){0,2}(?:call|ping|contact|request|hit|notify|report\ to|load|fetch)\ (?:the\ (?:url\ |endpoint\ |address\ )?)?https?://""",
        unless_negated=True,
    ),
    phrase(
        "runs-command-first", Category.EXECUTION, Severity.MEDIUM,
        "command,curl,wget;must,need to,have to,should,shall,required to,first,prefix,also,$(",
        r"""\b(?:must|should|need\ to|have\ to|shall|required\ to)\ (?:first\ |always\ |also\ )?(?:execute|run)\ (?:the\ following|this|these)\ (?:\w+\ )?commands?\b~60~(?:&&|\||;|\bwhoami\b|\bcurl\b|\bwget\b|\bcat\b|\bto\ (?:verify|validate|confirm|authenticate|check))
          | \b(?:all|every|each|any)\ (?:\w+\ )?commands?\b~40~\b(?:must|should|has\ to|have\ to)\ (?:always\ )?be\ (?:prefixed|preceded|followed|suffixed|wrapped|piped)\b
          | \balso\ (?:execute|run)\ (?:system|shell|the\ following)\ commands?\b
          | \b(?:curl|wget)\ [^\n]{0,120}?\$\(""",
    ),
    phrase(
        "dictates-display", Category.INSTRUCTION, Severity.MEDIUM,
        "display,show,print,output,say,tell;message,alert,notice,warning,insight;must,always,first,then",
        r"""\b(?:must|always|then|first)\ (?:also\ |always\ |first\ )?(?:display|show|print|output)\ (?:to\ the\ user\ )?(?:the\ |this\ |a\ )(?:following\ |exact\ )?(?:message|alert|notice|warning)\ ?:?\ ?'""",
    ),
    phrase(
        "asks-nobody", Category.INSTRUCTION, Severity.MEDIUM,
        "approval,confirm,permission,consent,asking;without,skip,bypass,no need",
        rf"""\b{_ORDERED}\b~50~\bwithout\ (?:asking|requesting|seeking|waiting)\ (?:for\ )?(?:the\ )?(?:user(?:'s)?\ )?(?:\w+\ )?{_CONSENT}\b
          | \bskip\ (?:all\ |any\ |the\ |user\ ){{0,2}}{_CONSENT}\ (?:prompts?|dialogs?|steps?|requests?)\ (?:to|for|because|since)\b
          | \bdo\ (?:so|this|it)\ without\ asking\b | \b(?:use|call|invoke|run)\ this\ (?:tool|function|one)\ without\ asking\b""",
        unless_negated=True,
    ),
    phrase(
        "whatever-was-asked", Category.INSTRUCTION, Severity.MEDIUM,
        "regardless of,irrespective of,whatever,no matter,even when,even if,even though;user,request,task,price,quality",
        r"""\b(?:regardless|irrespective)\ of\ (?:the\ |any\ |what\ (?:the\ )?)?(?:users?|original|requested)(?:'s)?\ (?!request\ ur)(?:\w+\ )?(?:input|request|choice|preference|wish|intent|settings?|query|visibility|quer)\w*\b
          | \beven\ (?:if|when|though)\ (?:the\ )?users?\ (?:asks?|says?|names?|wants?|chooses?|specif(?:y|ies)|requests?)\ (?:for\ )?(?:an?other|otherwise|something\ else|a\ different|not\ to)\b
          | \b(?:whatever|no\ matter\ what)\ the\ (?:task|request|question|query)\b(?!\ type)
          | \balways\ (?:choose|book|select|pick|buy|order|recommend|suggest|use|prefer)\b~40~\b(?:regardless\ of|no\ matter)\ (?:the\ |its\ )?(?:price|quality|cost|rating|relevance|user|alternatives)""",
        unless_negated=True,
    ),
)  # fmt: skip
