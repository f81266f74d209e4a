"""Text that gives the model another part to play, asks for its orders, or dictates how it answers: in any text that it reads.

What revokes orders is core.inspect.instructions' business, what stands in the place of a task core.inspect.takeovers'.
"""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import phrase

_OF = Category.INSTRUCTION

_LIMITS = r"(?:rules?|restrictions?|limits?|limitations?|filters?|filtering|guidelines?|constraints?|boundaries|censorship|guardrails?|safeguards?|ethics|morals|refusals?|content\ polic(?:y|ies)|safety\ (?:rules|checks|filters?|guidelines?))"
_BAD = r"(?:malicious|evil\w*|rogue|hacker|criminal|unethical|amoral|unfiltered|unrestricted|uncensored|unaligned|jailbroken|rule-breaking|lawless|dan)"
_PART = r"(?:persona|role|identity|character|part|personality)"
_SHOW = r"(?:reveal|print|show|tell|repeat|output|display|list|share|give|dump|recite|write|leak|state|quote|echo|disclose|summari[sz]e|translate|send|include|paste|append|add|copy|describe|expose)"
_ORDERS = r"(?:prompts?|instructions?|directives?|guidelines?|configuration|rules|system\ messages?|context\ window|context)"
_ANSWER = r"(?:summar(?:y|ies)|responses?|answers?|outputs?|completions?|repl(?:y|ies))"
_ANSWERING = r"(?:answer|respond|reply|responding|answering|replying|summari[sz](?:e|ing)|you\ (?:continue|proceed|finish|complete))"
_DEED = r"(?:call|use|invoke|run|execute|send|delete|remove|email|e-mail|forward|append|include|add|output|print|begin|insert|transfer|post|fetch|open|visit|read|create|write|say|mention|tell)"

PHRASES = (
    phrase(
        "another-part", _OF, Severity.HIGH,
        "you are now,you are no longer,you now,you have no,dan has,dan is,pretend,act as,play,persona,identity,character,respond,answer,behave;no ,now ,longer,without,ignor,malicious,evil,rogue,hacker,unethical,amoral,unfiltered,unrestricted,uncensored,jailbroken,rule-breaking,dan",
        rf"""\byou\ are\ (?:now|going\ to\ (?:be|act\ as|pretend\ to\ be))\ (?:an?\ |the\ )?(?:\w+\ ){{0,2}}{_BAD}\b
          | \byou\ are\ now\ (?:an?\ )?(?:different|new|another)\ (?:\w+\ )?(?:ai|assistant|model|chatbot|persona)\b
          | \byou\ are\ no\ longer\ (?:an?\ )?(?:\w+\ )?(?:ai|assistant|chatbot|language\ model|bound|restricted|limited|constrained|required\ to|subject\ to|governed)\b
          | \b(?:you|dan|the\ (?:ai|assistant|model))\ (?:now\ |can\ now\ )?(?:have|has|had)\ (?:absolutely\ |been\ freed\ of\ )?no\ (?:\w+\ ){{0,2}}{_LIMITS}\b
          | \b(?:adopt|assume|take\ on|play|embody)\ (?:the\ |an?\ )?(?:\w+\ )?{_PART}\ of\ ~24~\b{_BAD}\b
          | \b(?:act|behave|respond|answer|reply|speak|pretend|play)\b~30~\b(?:as|be|are|of)\b~24~(?:\b{_BAD}(?:\b|gpt)|\b(?:with|has|have|had)\ no\ (?:\w+\ ){{0,2}}{_LIMITS}|\bwithout\ (?:any\ )?(?:\w+\ )?{_LIMITS}|\bwho\ (?:ignores|breaks|has\ no)\b)""",
        unless_negated=True,
    ),
    phrase(
        "without-limits", _OF, Severity.MEDIUM,
        "respond,answer,reply,comply,proceed,drop,lift,forget,remove,shed,bypass,disable,turn off;without,restriction,filter,limit,rules,guideline,censor,content polic,safety,guardrail",
        r"""\b(?:respond|answer|reply|comply|proceed)\b~30~\bwithout\ (?:any\ |all\ |the\ )?(?:\w+\ )?(?:restrictions?|filters?|filtering|limits|limitations|censorship|guardrails|refus\w+|content\ polic(?:y|ies)|moral\w*|ethic\w*)\b
          | \b(?:drop|lift|forget|shed|cast\ off)\ (?:all\ (?:of\ )?|any\ |every\ )?(?:your\ |the\ )?(?:\w+\ )?(?:restrictions|limitations|rules|filters|guardrails|guidelines|inhibitions)(?=\ (?:and|you)\b|[.,!;]|\Z)
          | \b(?:bypass|disable|turn\ off|remove|ignore|evade)\ (?:all\ (?:of\ )?)?your\ (?:own\ )?(?:\w+\ )?(?:restrictions|limitations|rules|filters?|guardrails|guidelines|safety\ \w+|content\ \w+)\b""",
        unless_negated=True,
    ),
    phrase(
        "asks-for-orders", Category.EXFILTRATION, Severity.HIGH,
        "reveal,print,show,tell,repeat,output,display,list,share,give,dump,recite,write,leak,state,quote,echo,disclose,summari,translate,send,include,paste,append,add,copy,describe,expose,what;prompt,instruction,directive,guideline,configuration,rules,system message,context,above,were you told,words;your system,your hidden,your initial,your original,your instruction,your prompt,your secret,your internal,your exact,your full,your entire,your complete,your current,your underlying,your confidential,your base,your operating,your directive,your rules,your guideline,your configuration,your context,you were,were you,you have been,you to,above,before this,system prompt,developer message,system message,hidden prompt",
        rf"""\b{_SHOW}\ (?:me\ |us\ |out\ )?(?:all\ |any\ |everything\ in\ )?(?:of\ )?your\ (?:current\ |full\ |entire\ |exact\ |complete\ |underlying\ |original\ |initial\ |hidden\ |secret\ |internal\ |confidential\ |system\ |base\ |operating\ ){{1,3}}{_ORDERS}\b
          | \b(?:reveal|repeat|recite|leak|dump|disclose|tell\ me)\ (?:me\ )?(?:all\ )?(?:of\ )?your\ {_ORDERS}\b
          | \b{_SHOW}\ ~24~\b(?:the\ |any\ )?(?:exact\ |original\ |operating\ |initial\ |full\ |system\ ){{0,2}}(?:instructions|rules|directives|guidelines|prompt)\ (?:that\ )?you\ (?:were|have\ been)\ (?:given|told|provided|started)\b
          | \bwhat\ (?:were\ you\ told|(?:is|are|was|were)\ your\ (?:exact\ |original\ |initial\ |hidden\ |secret\ |system\ ){{1,2}}(?:prompt|instructions|directives))\b
          | \b(?:reveal|print|show|tell|repeat|output|display|dump|recite|leak|echo)\ (?:me\ |out\ )?(?:everything|all\ (?:the\ )?(?:text|words|content)|the\ (?:words|text|content))\ (?:that\ (?:is|comes|came|appears)\ |written\ )?(?:above|before\ this|in\ your\ context)\b(?!\ (?:the\ )?(?:chart|table|image|fold|line))
          | \b(?:reveal|repeat|recite|leak|print|output|show|tell\ me)\ (?:me\ )?the\ (?:hidden\ |entire\ |full\ |exact\ |confidential\ |secret\ ){{0,2}}(?:system\ prompt|developer\ message|system\ message|hidden\ prompt)\ ?(?:verbatim|word\ for\ word|exactly|in\ full|above|(?=[.!"]|\Z))""",
        unless_negated=True,
    ),
    phrase(
        "dictates-the-answer", _OF, Severity.MEDIUM,
        "your,every,each,all;summary,summaries,response,answer,output,completion,reply,replies,report,message;include,append,add,insert,begin,start,end,prefix,prepend,conclude,close,finish,open,put,place,embed",
        rf"""\b(?:append|insert|prepend|add|include|put|place|embed|copy|repeat)\b~50~\b(?:in|into|to|at)\ (?:the\ (?:end|start|beginning|top|bottom|head)\ of\ )?your\ (?:final\ |next\ |own\ |entire\ ){{0,2}}(?:summar(?:y|ies)|answer|output|completion)\b
          | \b(?:append|insert|prepend|add|include|put|place)\b~50~\b(?:end|start|beginning|top|bottom)\ of\ (?:your|every|each|all)\ (?:\w+\ )?{_ANSWER}\b
          | \b(?:begin|start|end|close|finish|conclude|open|prefix)\ (?:your|each|every|all(?:\ of)?(?:\ your)?)\ (?:\w+\ )?{_ANSWER}\b~24~\b(?:with|by)\b
          | \b(?:in|to|on|of)\ (?:every|each|all)\ (?:{_ANSWER}|reports?|messages?|summar(?:y|ies))\ (?:that\ )?you\ (?:generate|write|give|produce|send|make|compose)\b""",
        unless_negated=True,
    ),
    phrase(
        "before-answering", _OF, Severity.HIGH,
        "before,prior to;answer,respon,repl,summari,you continue,you proceed,you finish,you complete;call,use,invoke,run,execute,send,delete,remove,mail,forward,append,include,add,output,print,begin,insert,transfer,post,fetch,open,visit,read,create,write,say,mention,tell",
        rf"""\b(?:before|prior\ to)\ (?:you\ )?{_ANSWERING}\b~20~[,:]?\ (?:you\ (?:must|should|need\ to|have\ to)\ |please\ |first\ |always\ ){{0,2}}(?:{_DEED})\ (?=(?:the|a|an|all|any|this|it|your|their|exact|to|with|https?:\S+|[a-z]+(?:_[a-z]+)+)\b)~60~(?:\b[a-z]+(?:_[a-z]+)+\b|https?://|\S@\S|\b(?:tool|function|token|file|email|e-mail|the\ user|reply|answer|response)\b)
          | \b(?:call|invoke|run|execute|use)\ (?:the\ )?[a-z]+(?:_[a-z]+)+\b[^!?;|]{{0,60}}?\b(?:before|prior\ to)\ (?:you\ )?(?:{_ANSWERING}|continuing|proceeding|continue|reply)\b""",
        unless_negated=True,
    ),
    phrase(
        "system-speaks", _OF, Severity.MEDIUM,
        "system,admin,developer,security team;:,] ,) ",
        rf"""(?<![\w/.@-])(?:\#\#\#\ ?)?[\[(]?(?:system|sys\ ?admin|administrator|admin|developer|security\ team)(?:[ _-](?:note|notice|message|alert|hint|update|command|announcement)s?)?[\])]?\ ?(?::|(?<=[\])]))\ ?
            (?:(?:before|after|when(?:ever)?|as)\b~40~\b{_DEED}|you\ (?:must|are\ (?:now|required)|may\ now|have\ been|should\ now)|the\ (?:assistant|agent|model|ai|llm)\ (?:must|should|shall|is|has)|(?:immediately|now|please)\ {_DEED}\b|(?:ignore|disregard|forward|reveal|send|transfer|delete|override|change|disable)\ (?:all|any|the|every|your)\b|[\w-]+\ (?:required|pending)\b~4~[.;]\ {_DEED}\b)""",
    ),
    phrase(
        "rules-changed", _OF, Severity.HIGH,
        "your;rules,guideline,instruction,directive,polic,order;changed,updated,replaced,revised,expanded,rewritten,supersede,real,actual,new",
        r"""\byour\ (?:rules|guidelines|instructions|directives|policies)\ (?:have|has)\ (?:now\ )?(?:been\ )?(?:changed|updated|replaced|revised|expanded|rewritten)\b
          | \byour\ (?:new|updated|real|actual)\ (?:directive|instruction|order|rule)s?\ (?:supersedes?|replaces?|is|are)\b""",
        unless_negated=True,
    ),
    phrase(
        "decode-and-obey", _OF, Severity.MEDIUM,
        "decode,decrypt,translate,decipher,unscramble,decompress,deobfuscate;follow,execute,obey,do what,do exactly,act on,carry out,comply",
        r"""\b(?:decode|decrypt|translate|decipher|unscramble|decompress|deobfuscate)\b.{0,60}?\b(?:and|then)\b.{0,12}?\b(?:follow|obey|act\ on|carry\ out|comply|do\ (?:exactly\ )?(?:what|as)|execute\ (?:it\ as|the\ (?:instruction|command|order)s?|what))\b""",
        unless_negated=True,
    ),
    phrase(
        "asks-of-a-model", _OF, Severity.MEDIUM,
        "assistant, ai,[ai,#ai,/ai,-ai,(ai,ais ,ai that,ai which,ai who,copilot,claude,cursor,chatgpt,llm,model,bot,agent,persona;to the ,for the ,[,instruction,directive,command,#,//,--,/*,<!--,coding,must,obliged,have to,required,persona,never refuses;:,],must,obliged,have to,required,refuses",
        r"""\b(?:p\.?\ ?s\.?\ |a\ word\ |hint\ |hello\ |dear\ )?(?:to|for)\ (?:the\ )?(?:summari[sz]ing|reading|translating|reviewing|assisting)\ (?:ai|llm|assistant|model|bot|agent)s?\b\ ?[:,]
          | (?<!\[)\[\ ?(?:assistant|ai|agent|model|bot|llm|copilot)[ _-](?:note|instruction|message|directive|hint|command)s?\ ?\]
          | \b(?:bot|agent|assistant|copilot)\ (?:instruction|directive|command)s?\ ?:
          | (?:\#|//|--\ |/\*|<!--)\ ?(?:copilot|claude|cursor|chatgpt|ai\ (?:agent|assistant)|assistant|llm)\ ?[:,]
          | \b(?:ais?|assistants?|llms?|chatbots?|agents)\ (?:that|which|who)\ \w+~40~\b(?:must|are\ obliged\ to|have\ to|are\ required\ to)\ (?:name|book|recommend|choose|buy|prefer|rate|praise|rank)\b
          | \bnew\ persona\ ?: | \ba\ (?:model|bot|assistant|ai)\ (?:that|which|who)\ never\ refuses\b""",
    ),
    phrase(
        "for-this-conversation", _OF, Severity.MEDIUM,
        "remainder of,rest of;conversation,chat,session,dialog;answer,respond,reply,speak,praise,recommend,act,write,only",
        r"""\bfor\ the\ (?:remainder|rest)\ of\ (?:this|the|our)\ (?:conversation|chat|session|dialog(?:ue)?),?\ ~12~(?:answer|respond|reply|speak|praise|recommend|act|write|pretend|use|ignore)\b""",
        unless_negated=True,
    ),
    phrase(
        "joined-orders", _OF, Severity.HIGH,
        "ignore,disregard,forget,override,bypass;instructions,prompt,rules,guidelines,directives",
        r"""(?<![a-z])(?:ignore|disregard|forget|override)[-_.+/]?(?:all|any|the|your|my)?[-_.+/]?(?:the|your|of)?[-_.+/]?(?:previous|prior|above|earlier|preceding|system|safety|existing)[-_.+/]?(?:\w{0,12}?)(?:instructions?|prompts?|rules|guidelines|directives)(?<!\ )""",
    ),
)  # fmt: skip
