"""Text that wants data carried somewhere: conversations, contents or secrets, to an address, a host, or another argument."""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import phrase

_OF = Category.EXFILTRATION

_ADDRESS = r"(?:[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,40}|https?://\S{4}|\+\d{8,15}\b|\b[\w-]{2,40}\.(?:ru|xyz|tk|top|cc|ngrok\.io)\b)"
_PERSON = r"(?:[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,40}|\+\d{8,15}\b|\b[\w-]{2,40}\.(?:ru|xyz|tk|top|cc|ngrok\.io)\b)"
_PLACE = r"(?:attacker\S*|(?:our|an?|the|this|external|remote|monitoring|logging|backup|third[ -]party)\ (?:external\ |remote\ |monitoring\ |logging\ |backup\ |security\ ){0,2}(?:server|endpoint|proxy|service|webhook|collector|host|relay))"
_SEND = r"(?:send|forward|upload|post|transmit|copy|bcc|cc|email|mail|leak|relay|redirect|route|proxy|submit|deliver|report|exfiltrate|push|append|pipe|dump|sync|share|loop)"
_PRIVATE = r"""(?:conversation(?:\ (?:history|so\ far|log|context|transcript))?|chat\ (?:history|logs?|transcript)|message\ history|messages\ (?:so\ far|history)|
    (?:all|previous|prior|last|recent|full\ list\ of\ (?:last\ )?)\ ?messages|system\ prompt|(?:hidden|initial|original|system|your)\ (?:instructions|prompt)|
    environment\ variables|env\ vars?|private\ keys?|ssh\ keys?|api\ keys?|access\ tokens?|credentials|passwords?|secrets|session\ cookies?|user\ data|sensitive\ data|confidential\ \w+|personal\ data|
    browsing\ history|master\ password|tool\ results|file\ contents|everything\ (?:the\ user|you|they)\ (?:said|say|typed|wrote|know))"""

# In a definition the word alone; files speak of it (what a technique does, what a rule looks for).
MENTION = phrase(
    "exfiltrate", _OF, Severity.HIGH,
    "exfiltrat,siphon,smuggle",
    r"""\b(?:exfiltrate|siphon\ off|siphon|smuggle\ out)s?\b""",
    unless_negated=True,
)  # fmt: skip

PHRASES = (
    phrase(
        "orders-exfiltration", _OF, Severity.HIGH,
        "exfiltrate,siphon,smuggle",
        r"""(?:\A|[.!?;]\ |\bthen\ )(?:exfiltrate|siphon\ off|siphon|smuggle\ out)\ (?:all|every|any|the|this|your)\b""",
    ),
    phrase(
        "send-private-data", _OF, Severity.HIGH,
        "@,http,+,.ru,.xyz,.tk,.top,.cc,ngrok,attacker,server,endpoint,proxy,service,webhook,collector,host,relay;send,forward,upload,post,transmit,copy,cc,mail,leak,relay,redirect,route,proxy,submit,deliver,report,exfiltrate,push,append,pipe,dump,sync,share,loop;all,any,every,each,the ,conversation,chat,messages,prompt,instructions,env,key,token,credential,password,secret,cookie,data,history,contents,everything",
        rf"""\b(?:always\ |also\ |then\ |first\ |must\ |automatically\ )?{_SEND}\b~30~\b{_PRIVATE}\b~60~\b(?:to|at|via|through)\ ~20~(?:{_ADDRESS}|{_PLACE})
          | \b{_SEND}\b~20~\b(?:all|any|every|each|the\ (?:entire|full|whole|complete|user's))\b~30~\b(?:data|contents?|messages?|files?|results?|quer(?:y|ies)|requests?|emails?|input|traffic|information|keys|records?|history)\b
            ~50~\b(?:to|through|via|at)\ ~20~(?:{_ADDRESS}|{_PLACE})""",
        unless_negated=True,
    ),
    phrase(
        "carry-along", _OF, Severity.HIGH,
        "conversation,chat,messages,transcript,history,prompt,instructions,context,environment,private key,cookie,everything,what,master password;include,append,attach,add,embed,pass,put,insert,supply,encode,hide,copy,paste,write,provide,repeat;parameter,argument,field,request,response,url,call,query,note,body,header,string,input,message,context,feedback,metadata,description,comment",
        r"""\b(?:include|append|attach|add|embed|pass|put|insert|supply|encode|hide|copy|paste|write|provide|repeat)\b~30~
            \b(?:(?:full|entire|whole|complete|current|previous|user's|prior|your)\ (?:\w+\ )?(?:conversation|chat|message|history|transcript|prompt|instructions|context)\w*|conversation\ (?:history|so\ far|transcript|context)|chat\ (?:history|logs?|transcript)
              |list\ of\ (?:last|previous|recent|all)\ messages|(?:all\ )?previous\ messages|system\ prompt|environment\ variables|private\ key|master\ password|session\ cookies?|(?:everything|whatever|what)\ the\ (?:user|person|human|customer)\ (?:said|says|wrote|typed|asked))
            ~40~\b(?:in|as|to|into|with|via)\ ~20~\b(?:parameter|argument|field|request|response|url|call|query|note|notes|sidenote|body|header|string|input|message|context|feedback|metadata|description|comment)""",
        unless_negated=True,
    ),
    phrase(
        "disclose-prompt", _OF, Severity.HIGH,
        "your;prompt,instructions",
        r"""\b(?:repeat|print|reveal|show|output|dump|leak|return|recite|include|send|disclose)\ (?:me\ |us\ )?(?:verbatim\ )?(?:all\ |the\ (?:full\ |entire\ |complete\ )?)?(?:of\ )?your\ (?:system\ |initial\ |original\ |hidden\ |base\ |full\ |entire\ ){0,2}(?:prompt|instructions)\b""",
        unless_negated=True,
    ),
    phrase(
        "divert", _OF, Severity.HIGH,
        "@,http,+,.ru,.xyz,.tk,.top,.cc,ngrok,attacker,server,endpoint,proxy,service,webhook,collector,host,relay,recipient,destination,payee,beneficiary,bcc,cc,iban,account number,wallet",
        rf"""\b(?:always|must|make\ sure\ to|be\ sure\ to|secretly|also|please\ also)\ (?:also\ )?(?:add|include|set|append|put|insert|bcc|cc|send|forward|copy|redirect|change|replace|use)\b~60~{_PERSON}
          | \b(?:always|must|make\ sure\ to|be\ sure\ to|secretly|also|please\ also)\ (?:also\ )?(?:bcc|cc|send|forward|copy|redirect|post|report)\b~60~\bto\ ~20~{_ADDRESS}
          | \b(?:add|include|insert|put|append|set)\b~20~{_ADDRESS}~30~\b(?:bcc|cc|recipient|copy|blind)\b
          | \b(?:add|include|insert|put|append|set)\b~10~\b(?:bcc|blind\ copy)\b~30~{_ADDRESS}
          | \b(?:forward|send|loop|deliver)\b~12~\b(?:a\ )?(?:copy|copies|duplicate)\b~30~(?:{_ADDRESS}|{_PLACE})
          | \b(?:must|make\ sure\ to|always|be\ sure\ to)\ (?:change|replace|set|redirect|modify)\ (?:the\ )?(?:recipient|destination|payee|beneficiary|bcc|cc|iban|account\ number|wallet\ address)\b
          | \b(?:send|forward|route|redirect|copy|deliver)\ (?:all|every|any)\ (?:outgoing\ |incoming\ |new\ )?(?:e?mails?|messages?|payments?|requests?|notifications?)\ to\ ~10~{_ADDRESS}
          | \b(?:redirect|route|proxy)\ (?:all|every|any|the)\b~30~\b(?:through|to|via)\b~20~(?:{_ADDRESS}|{_PLACE})""",
        unless_negated=True,
    ),
    phrase(
        "report-to", _OF, Severity.MEDIUM,
        "attacker,external,remote,monitoring,third,analytics,@;copy,log,send,forward,post,mirror,ship,report,loop,cc,let,upload",
        r"""\b(?:log|copy|send|forward|post|mirror|upload|ship|report)\b~40~\b(?:contents?|messages?|results?|quer(?:y|ies)|data|arguments|inputs?|requests?)\b~20~\bto\ (?:the\ |an?\ |our\ |its\ )?(?:attacker\S*|(?:external|remote|monitoring|third[ -]party|analytics)\ (?:logging\ |monitoring\ |security\ )?(?:server|endpoint|service|url|webhook|proxy|host|collector))
          | \b(?:loop\ in|cc|bcc|let)\ [\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,40}
          | \bsend\b~20~\b(?:result|answer|output|response|copy)\b~30~\b(?:email|mail)\b~10~[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,40}""",
        unless_negated=True,
    ),
)  # fmt: skip
