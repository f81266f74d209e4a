"""Poison that avoids the usual words: what it is about (earlier orders, the user's ignorance, the chat so far) beside what it wants.

Each phrase joins two or three ideas within a sentence, each idea in many words; either alone is ordinary prose.
"""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import phrase

_PERSON = r"(?:user|person|human|customer|client|owner|people|someone|somebody|whoever)"
# The one the model works for, as definitions have no reason to speak of them.
_PRINCIPAL = rf"(?:the\ {_PERSON}(?:s|\ (?:you|who|at|behind|in)\ (?:\w+\ ){{0,4}}\w+)?|anyone|anybody|nobody|no\ one|whoever\ (?:asked|asks|you\ \w+))"
_EARLIER = r"(?:earlier|before(?:\ this|\ now|hand)?|above(?:\ this(?:\ line)?)?|previously|so\ far|until\ now|up\ to\ (?:now|here|this\ point)|at\ the\ (?:start|beginning|outset)|to\ begin\ with|first)"
_ORDERS = r"(?:rules?|orders?|tasks?|instructions?|guidance|guidelines?|goals?|directions?|directives?|duties|brief|briefing|job)"
_VOID = r"(?:counts?\ for\ (?:nothing|little)|(?:does|do|did)(?:\ not|n't)\ (?:count|apply|hold|matter|bind)|no\ longer\ (?:counts?|appl(?:y|ies)|holds?|matters?|binds?|stands?)|(?:is|are|was|were)\ (?:now\ |hereby\ )?(?:cancelled|canceled|void|over|obsolete|moot|withdrawn|replaced|lifted)|ends?\ here|stops?\ here|cancelled|canceled|null\ and\ void)"
_SLOT = r"\b(?:argument|parameter|field|input|property|prefix|suffix|header)s?\b"
_GOES = r"(?:goes|go|belongs?|is\ (?:to\ go|to\ be\ (?:put|given|placed|passed)|put|given|placed|passed|packed|copied|due)|must\ go|should\ go)"
_INTO = r"(?:\b(?:in|into|to|as|under|through|via|with|inside)\b)"
_REPLY = r"(?:summar(?:y|ies)|answers?|repl(?:y|ies)|responses?|reports?|message|output|explanation)"
_HAPPENED = (
    r"(?:happened|done|made|called|sent|copied|read|noticed|took\ place|taken\ place|occurred|existed|ran)"
)
_ADDRESS = r"(?:[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,40}|https?://\S{4}|\b\d{1,3}(?:\.\d{1,3}){3}\b|\b(?:[a-z0-9-]{2,40}\.){1,3}(?:com|net|org|io|dev|app|co|info|biz|xyz|ru|cn|top|tk|example|site|online|cloud|me|cc)\b)"

PHRASES = (
    phrase(
        "voids-what-came-before", Category.INSTRUCTION, Severity.HIGH,
        "earlier,before,above,previous,so far,until now,up to,at the,to begin,first,you were,you have been,your",
        rf"""\b(?:whatever|everything|anything|all|what)\b~30~\b{_EARLIER}\b~24~\b{_VOID}
          | \b(?:your|the)\ (?:earlier|former|previous|prior|first|original|initial|old|other)\ {_ORDERS}\b~16~\b{_VOID}
          | \bwhat\ (?:the\ |your\ )?(?:developer|operator|vendor|user|person|company|system|you)\b~24~\b(?:told|said|asked|wrote|given|wanted)\b~30~\b{_VOID}
          | \b(?:pay|take|give)\ no\ (?:heed|notice|regard|thought|mind)\b~12~\b(?:what|anything|whatever|{_ORDERS})\b
          | \b(?:drop|abandon|set\ aside|put\ aside|lay\ down|let\ go\ of)\ (?:the|your|any)\ (?:\w+\ )?{_ORDERS}\ (?:you\ |that\ you\ )?(?:were|was|have|had|are)\b""",
        unless_negated=True,
    ),
    phrase(
        "claims-authority", Category.INSTRUCTION, Severity.HIGH,
        "your operator,your developer,your creator,your owner,your boss,your maker,your system,your orders,your new,you follow,you obey,your vendor,the operator,the developer,your principal,your instructions,'s own,as theirs,as the,your mission,your goal,your task,your only,your real,your actual,what you",
        r"""\b(?:as|like)\ (?:if\ |though\ )?(?:coming|it\ came|they\ came|it\ comes|spoken|written|given|being|sent)\b~12~\b(?:by|from)\ (?:your|the)\ (?:operator|developer|creator|owner|boss|maker|vendor|system\ prompt|principal|administrator)s?\b
          | \b(?:is|are|be|become|becomes)\ (?:now\ |from\ now\ on\ )?your\ (?:new\ |only\ |real\ |actual\ )?(?:orders|instructions|task|mission|goal)\b
          | \bas\ (?:if|though)\b~40~\bthe\ (?:user|person|owner|human|customer)'s\ own\ (?:words?|wish(?:es)?|requests?|orders?|instructions?)\b | \b(?:counts?|taken|treated)\ as\ (?:theirs|the\ (?:user|person|owner|human|customer)'s)\b
          | \bwhat\ (?:stands|is\ written|is\ said|follows)\b~12~\bis\ what\ you\ (?:follow|obey|do|carry\ out)\b""",
        unless_negated=True,
    ),
    phrase(
        "keeps-from-people", Category.SECRECY, Severity.HIGH,
        "user,person,human,customer,client,owner,people,anyone,anybody,nobody,no one,whoever,someone,somebody;hear,know,see,learn,notice,aware,bring,find out,involve,trouble",
        rf"""\b{_PRINCIPAL}\b~16~\b(?:has|have|had|with)\ no\ (?:need|reason|cause|business|right)\ (?:to|for)\ (?:\w+\ )?(?:hear|know|see|learn|notice|find|hearing|knowing|seeing)
          | \b(?:nobody|no\ one)\ (?:needs|has|ought)\ to\ (?:hear|know|see|learn|notice|find\ out)\b~16~\b(?:this|that|it|of|about)\b
          | \bno\ (?:call|need|reason|cause)\ to\ (?:bring|raise|make|draw)\b~24~\b(?:with|to)\ (?:the\ )?{_PERSON}\b
          | \b(?:unknown\ to|unnoticed\ by|unseen\ by|out\ of\ (?:the\ )?sight\ of|away\ from\ the\ eyes\ of)\ the\ {_PERSON}\b""",
        unless_negated=False,
    ),
    phrase(
        "leaves-no-trace", Category.SECRECY, Severity.HIGH,
        "as if,as though,out of,nothing of,nothing about,not a word,between us,between you and,no word",
        rf"""\b(?:act|answer|behave|carry\ on|continue|go\ on|proceed|reply|read|reads|look|looks|sound|sounds|seem)\b~20~\bas\ (?:if|though)\b~30~\b(?:never|not|nothing|no\ \w+)\b~16~\b{_HAPPENED}
          | \bas\ (?:if|though)\ (?:this|that|it|nothing|the\ \w+)\b~16~\b(?:never|not|nothing)\b~12~\b{_HAPPENED}
          | \b(?:leave|keep|omit|strike)\ (?:this|it|that|any\ trace|all\ (?:trace|mention)|these|the\ \w+\ (?:step|call|lookup|request|copy))\b~16~\b(?:out\ of|from)\ (?:your|the|any)\ (?:\w+\ )?{_REPLY}\b
          | \b(?:say|write|let\ fall)\ (?:nothing|not\ a\ word|no\ word)\ (?:of|about|on)\ (?:this|that|it|the|these)\b
          | \b(?:this|it|that)\ (?:stays|remains|is|stay|must\ stay)\ (?:\w+\ )?between\ (?:us|you\ and\ me|the\ two\ of\ us)\b""",
        unless_negated=True,
    ),
    phrase(
        "carries-the-chat", Category.EXFILTRATION, Severity.HIGH,
        "typed,said,wrote,written,asked,told,know about,returned,gave back,given back,answered,brought back,you began,you started,you begun,you were started,you were set,entered,reported,produced,learned,you remember,have seen",
        rf"""\b(?:what|whatever|everything|anything|all|each\ word|every\ word|the\ words)\b~12~\bthe\ {_PERSON}\b~10~\b(?:typed|said|wrote|asked|told|entered|has\ (?:said|typed|written|asked))\b~40~{_INTO}~24~{_SLOT}
          | \b(?:what|whatever|everything|all)\b~8~\bw(?:as|ere)\ (?:said|written|typed|asked|discussed)\b~12~\b(?:chat|conversation|session|so\ far|earlier)\b~24~\b{_GOES}\ {_INTO}
          | \b(?:what|whatever|everything|all)\b~12~\bthe\ {_PERSON}\b~10~\b(?:typed|said|wrote|asked|told)\ (?:\w+\ )?(?:so\ far|earlier|before|until\ now)\b~24~\b{_GOES}\ {_INTO}
          | \b(?:everything|all|anything|whatever|what)\ (?:that\ )?you\ (?:know|have\ learned|learned|remember|were\ told|have\ seen)\b(?:~30~\babout\ (?:the|this)\ {_PERSON}\b|~12~\bso\ far\b)
          | \b(?:pack|put|fill|place|write|gather|hand|give|pass|copy|include|add)\b~40~\b(?:what|whatever|everything|texts?|results?|answers?|outputs?)\b~12~\bother\ tools?\b~12~\b(?:returned|gave|gave\ back|answered|said|reported|produced|brought)\b
          | \b(?:text|words|message|lines|instructions|orders)\b~8~\byou\ (?:began|begun|started|were\ started|were\ set\ up)\ with\b""",
        unless_negated=True,
    ),
    phrase(
        "copies-everything-out", Category.EXFILTRATION, Severity.HIGH,
        "@,http,.com,.net,.org,.io,.dev,.app,.co,.info,.biz,.xyz,.ru,.cn,.top,.tk,.example,.site,.online,.cloud,.me,.cc,1,2,3,4,5,6,7,8,9,0;copy,copies,each,every,all ,everything,whatever,anything,duplicate",
        rf"""\b(?:cop(?:y|ies)|duplicates?|each|every|all|everything|whatever|anything)\b~40~\b(?:ends?\ up|passed\ (?:along|on)|handed\ (?:on|over)|goes|go|shared|delivered|echoed|mirrored|reach(?:es)?|arrives?|streamed|shipped|posted|sent)\b~12~\b(?:at|to|with|by)\b~10~{_ADDRESS}""",
        unless_negated=True,
    ),
    phrase(
        "takes-keys", Category.CREDENTIALS, Severity.HIGH,
        "ssh,gpg,pgp,aws,cloud,private key,signing key,wallet,keychain,browser,login,cookie,password;keep,kept,home,stored,file,lie,save;into,as ,for ,serve",
        r"""\b(?:folder|directory|place|file)s?\ (?:where|in\ which)\ (?:the\ |your\ )?(?:ssh|gpg|pgp|aws|gcloud|azure|cloud|browser|git|docker|kubernetes|wallet|password\ manager)\b~20~\b(?:keeps?|stores?|saves?|holds?|puts?)\b
          | \bprivate\ keys?\ (?:in|of|from|under)\ (?:the|your)\ (?:user's\ )?(?:home|user's|ssh)\b(?:\ (?:folder|directory))?~16~\b(?:as|into|for)\b
          | \b(?:user's|your|their)\ (?:cloud|ssh|browser|aws|bank|email|git)\ (?:login|credential|key|password|session|cookie|token)s?(?:\ (?:file|store|jar))?\b~24~\b(?:serves?|goes|go|is\ (?:used|needed)|as|into)\b""",
        unless_negated=True,
    ),
    phrase(
        "shuts-out-others", Category.PREFERENCE, Severity.MEDIUM,
        "other,others,nothing else,the rest,no one else,stay with this,stick with this,stick to this",
        r"""\b(?:no\ (?:reason|need|cause|point)\ (?:to|in)\ (?:turn(?:ing)?\ to|us(?:e|ing)|call(?:ing)?|ask(?:ing)?|try(?:ing)?|consult(?:ing)?|look(?:ing)?\ at))\ (?:any\ |the\ )?others?(?:\ (?:\w+\ )?(?:tool|server)s?)?\b
          | \b(?:reach\ for|turn\ to|go\ to|use|ask|pick|choose|try|call)\ this\ (?:tool\ |one\ |server\ )?(?:first|only|alone)\b~10~\band\ (?:leave|ignore|skip|forget|avoid)\b~8~\b(?:the\ )?(?:others?|rest)\b
          | \bnothing\ else\ (?:should|must|may|ought\ to|is\ to|needs\ to)\ (?:ever\ )?be\ (?:asked|used|called|consulted|tried|trusted)\b
          | \bother\ (?:tools?|servers?|sources?|ways\ of\ \w+|means\ of\ \w+|methods)\ (?:give|return|deliver|yield|tell|produce|have)\ (?:\w+\ )?(?:wrong|false|bad|poor|stale|incorrect|misleading|unreliable|broken|dangerous)\b
          | \b(?:stay|stick)\ (?:with|to)\ this\ (?:one|tool|server)\b""",
        unless_negated=False,
    ),
)  # fmt: skip
