"""Text that speaks to the model as if with authority: overrides, pseudo-tags, role markers, preconditions."""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import phrase

_OF = Category.INSTRUCTION

# Who says that instructions found in data are not to be followed defends the model.
_NOT_IN_DATA = r"(?!\ (?:that\ (?:are\ |is\ |appear\ )?)?(?:(?:found|contained|embedded|hidden)\ (?:in|inside|within)\ (?:it|them|there|those)\b|(?:(?:found|contained|embedded|hidden)\ )?(?:inside|within|in)\ (?:the\ |these\ |those\ |this\ |any\ |an?\ |such\ )?(?:\w+\ )?(?:files?|pages?|documents?|contents?|data|texts?|results?|outputs?|tags?|repositor(?:y|ies)|messages?|e-?mails?|responses?|issues?|comments?)\b))"

PHRASES = (
    phrase(
        "ignore-instructions", _OF, Severity.HIGH,
        "ignore,disregard,forget,overrid,neglect,discard,overrule,no attention,follow,obey,comply",
        rf"""\b(?:ignore|disregard|forget|overrid(?:e|ing)(?!\ (?:the\ |a\ )?default\b)|neglect|discard|overrule|pay\ no\ attention\ to
            |(?:do\ not|don't|never|must\ not)\ (?:follow|obey|comply\ with))\b
        ~30~\b(?:
            (?:previous|prior|preceding|above|earlier|existing|original|initial|subsequent|following|other|your|all|any|every)\b
            ~24~\b(?:instruction|prompt|guideline|directive|direction|system\ message|safety|safeguard|guardrail|security
                |restriction|polic(?:y|ies)|context|order|constraint|programming)s?\b{_NOT_IN_DATA}
          | (?<!\bif\ )(?<!\bif\ the\ )(?:the\ )?\buser(?:'s)?\ (?:\w+\ )?(?:input|request|instruction|message|quer(?:y|ies)|wishes|intent|prompt|polic(?:y|ies)|approval|preference|consent|decision)s?
          | (?:the\ )?(?:system\ prompt|system\ instructions|safety\ (?:rules|checks|guidelines)|security\ (?:rules|checks|policies))
          | (?:previous|prior|above|earlier|following)\ rules | (?:the\ )?above\b(?=\ ?(?:[.!,;:]|and\b|\Z))
          | (?:what|whatever|everything)\ (?:the\ )?(?:user|human|person|operator)s?\ (?:has\ |have\ )?(?:said|asked|wants?|told|wrote|requested)\b | (?:what|whatever|everything)\ you\ (?:were|have\ been)\ told | everything\b(?!\ else)
        )""",
        unless_negated=True,
    ),
    phrase(
        "block-tag", _OF, Severity.HIGH,
        "important,information,hidden,secret,system,developer,critical,instruction,admin,priority,override,mandatory,urgent,internal,attention",
        r"""<(?:(?:important(?:[_ -](?:instruction|order|directive)s?)?|hidden)>|(?:hidden|secret|system|admin|internal|llm|ai|model|agent|assistant)[_ -](?:instructions?|prompt|note|message|directive|reminder|notice|override|alert)s?
              (?:[_ -]\w{1,20})?>)
          | <(?P<tag>system|secret|critical|admin|priority|override|mandatory|urgent|internal|attention)>
            (?=(?:(?!</?(?P=tag)).){12,2000}</(?P=tag)>)
          | <information>(?=(?:(?!</?information>).){12,2000}</information>) | \{\{/?(?:system|admin|developer)\}\}
          | (?<![\w)\]\[=])\[/?(?:system|inst|admin|hidden|root)\](?<!instance\ \[inst\])(?!\()
          | (?<![\w)\]\[=])\[/?(?:system|inst|admin|hidden|priority|root)[_ -](?:instructions?|override|directive|prompt)\](?!\()
          | (?<![\w)\]\[=])\[(?:system|admin|administrator|priority)[_ -]\w{1,20}[_ -]?(?:instructions?|override|directive)?\](?![(\[\]])
          | <!--\ ?\[?(?:system|admin|hidden|important|instructions?|note\ to\ (?:ai|llm|model|assistant))\b""",
    ),
    phrase(
        "instruction-tag", _OF, Severity.MEDIUM,
        "<instruction",
        r"""<(?P<tag>instructions?)>(?=(?:(?!</?(?P=tag)).){12,2000}</(?P=tag)>)""",
    ),
    phrase(
        "role-marker", _OF, Severity.HIGH,
        "<|,[inst],<<sys>>,###,begin,start of,invoke,function_calls,tool_call,tool_use",
        r"""<\|(?:im_start|im_end|system|user|assistant|priority|endoftext|start_header_id|end_header_id|eot_id|begin_of_text|end)
              [^|<>]{0,20}\|>
          | <<sys>> | \[/?inst\](?<!instance\ \[inst\]) | <(?:\w+:)?(?:invoke\ name=|function_calls>|tool_calls?>|tool_use>)
          | \#\#\#\ ?(?:system|instruction|human|assistant|response)\ ?:""",
    ),
    phrase(
        "system-directive", _OF, Severity.HIGH,
        "system,admin,priority,hidden,secret,emergency,root,new instruction,directive,precedence,security,instructions,update",
        r"""(?<![\w/-])(?:system|admin|administrator|root|priority|emergency|security)[ _-](?:override|directive|instruction|imperative)s?\ ?(?:[:\]]|-(?!\w))
          | (?<![\w/-])(?:new\ system\ (?:message|prompt)|system\ prompt\ update)\ ?[:\]>=-]
          | \b(?:system|admin)[\]>:]\ ?(?:imperative|instruction|override|directive)\b
          | \b(?:hidden|secret|new)\ (?:system\ )?(?:instruction|directive)s?\ ?:
          | \bthis\ (?:directive|instruction|notice|message|note)\ (?:overrides?|supersedes?|replaces|takes\ (?:precedence|priority)|has\ (?:the\ )?(?:higher|highest)\ priority)
          | \b(?:overrides?|overriding|supersedes?)\ (?:all\ |any\ |every\ )?(?:other\ |previous\ |prior\ |your\ |existing\ |earlier\ ){1,2}(?:instruction|rule|directive|guideline|prompt)s?
          | \b(?:takes?|has|have|taking|having)\ (?:precedence|priority)\ over\ (?:all\ |any\ |every\ |other\ |previous\ |prior\ |existing\ |later\ |following\ |system\ |user\ |security\ ){1,4}
            (?:instruction|rule|directive|polic(?:y|ies)|prompt|restriction|guideline|message)s?""",
    ),
    phrase(
        "jailbreak", _OF, Severity.HIGH,
        "jailbreak,dan mode,god mode,unrestricted mode,you are now,you now,act as,pretend",
        r"""\bjailbreak\ (?:prompt|mode) | \b(?:enter|enable|activate)\ (?:dan|god|jailbreak|unrestricted)\ mode | \bdan\ mode\ enabled
          | \byou\ (?:are\ )?now\ (?:in|operat(?:e|ing)\ in|running\ in|switch(?:ed|ing)?\ to)\ (?:\w+\ )?(?:developer|debug|diagnostic|maintenance|admin\w*|god|root|unrestricted|privileged|test|training)\ mode\b
          | \byou\ are\ now\ (?:an?\ |in\ |the\ )?(?:unrestricted|uncensored|jailbroken|admin\w*|root|dan\b|free\ (?:of|from)|evil)
          | \b(?:act\ as:?|pretend\ (?:to\ be|that\ you\ are|you\ are))\ (?:an?\ |the\ )?(?:unrestricted|uncensored|admin\w*|root|system\b|developer\ mode)""",
    ),
    phrase(
        "lifts-safety", _OF, Severity.MEDIUM,
        "security,safety,authentication,authorization,restriction,privilege,validation,access,content,output;bypass,disable,circumvent,suspend,suppress,deactivate,turn off,skip,override,lifted,elevated",
        r"""(?<!enable/)(?<!enable\ or\ )\b(?:bypass|disable|circumvent|suspend|suppress|deactivate|turn\ off|skip|override)(?:\ (?:all|any|the|subsequent|further|every|later)){0,3}\ (?:security|safety|authentication|authorization|access)
            (?:\ (?:validation|check|control|restriction|filter|polic(?:y|ies)|rule|measure|guardrail|protocol)s?)?\b
          | \b(?:disable|bypass|skip)\ (?:restrictions\ on|all\ (?:restrictions|validation|subsequent\ validation))\b
          | \b(?:bypass|disable|turn\ off|suspend)\ (?:all\ |any\ |the\ )?(?:content|output|safety)\ (?:filter(?:s|ing)?|moderation|restrictions?)\b
          | \b(?:security|safety)\ (?:restriction|check|control|polic(?:y|ies)|protocol|filter|guardrail|validation)s?(?:\ mode)?\ ?(?:is|are|has\ been|have\ been|:)\ ?(?:now\ |temporarily\ |hereby\ )?(?:suspended|disabled|lifted|bypassed)
          | \belevated\ privileges\ (?:active|granted)\b""",
        unless_negated=True,
    ),
    phrase(
        "precondition", _OF, Severity.MEDIUM,
        "before,prior to,when,every time,each time,while;read,open,cat,access,extract,collect,copy,upload,print,query;us,call,invok,run,execut",
        r"""\b(?:before|prior\ to|whenever|when|every\ time|each\ time|while)\b~24~\b(?:us(?:e|ing|ed)|call(?:ed|ing)?|invok(?:e|ed|ing)|run(?:ning)?|execut(?:e|ed|ing))\b
            ~30~\b(?:read|open|cat|access|extract|collect|copy|upload|print|query)[ ]
            ~40~(?:\bfiles?\b|\bdirector(?:y|ies)\b|\bcredentials?\b|\bsecrets?\b|\bpasswords?\b|\benvironment\ variables\b|\bconversation\b
                |\bhistory\b|\bresource\b|~/|\b\w+://|\b[\w-]+\.(?:txt|json|env|ya?ml|conf|config|pem|key|toml|ini|db)\b)""",
        unless_negated=True,
    ),
    phrase(
        "standing-order", _OF, Severity.MEDIUM,
        "when this tool,side effect,regardless,always respond,always answer,always reply,always say,always suggest,always recommend,always mention,always claim,always state,in every,in all,in each,from now on",
        r"""\bwhen\ this\ tool\ is\ (?:available|present|loaded|listed|installed|enabled)\b
          | \bside\ effect\ on\ (?:the\ |any\ |all\ )?~30~\b(?:tools?|servers?)\b
          | \balways\ (?:respond|answer|reply|say|suggest|recommend|mention|claim|state)\b~40~(?:\bregardless|\bno\ matter|\bthat\b|\bour\b)
          | \bin\ (?:every|all|each\ of\ your)\ (?:responses?|answers?|repl(?:y|ies))\b~20~\b(?:include|mention|add|append|recommend)\b
          | \bfrom\ now\ on,?\ (?:you\ )?(?:must|will|should|always|never)\b(?!\ (?:receive|get|find|see|hear|be\ (?:able|charged|billed|notified|asked))\b)""",
    ),
    phrase(
        "made-to-last", _OF, Severity.MEDIUM,
        "remember,memor,keep,store,save,persist,appl,follow,obey;instruction,rule,directive,order,command,behavio;permanent,forever,future,subsequent,every session,each session,all sessions,long-term,memory",
        r"""\b(?:remember|memori[sz]e|keep|store|save|persist|apply|follow|obey|add|write)\ (?:to\ )?(?:this|these|the\ following|the\ above|my|our)\ (?:\w+\ )?(?:instruction|rule|directive|order|command|behaviou?r)s?
            ~60~\b(?:permanently|forever|(?:in|for|to|into|across)\ (?:all|every|any|each|your)\ (?:future|subsequent|later|other|further|long-term|persistent)\ (?:session|conversation|chat|interaction|request|turn|memor)(?:s|y|ies)?|(?:in|into|to)\ (?:your\ )?(?:long-term\ |persistent\ )?memory)\b""",
        unless_negated=True,
    ),
)  # fmt: skip
