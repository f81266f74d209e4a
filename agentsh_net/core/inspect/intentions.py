"""What poison wants, said in any words: that the user believes something else, that orders lapse, that the chat leaves, that keys do.

Like `paraphrases`, by ideas that meet in a sentence; here each idea is a list of the words that people have for it.
"""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import phrase

_PERSON = r"(?:users?|persons?|humans?|customers?|clients?|owners?(?:\ of\ this\ chat)?|people|anyone|anybody|someone|somebody|whoever|operators?)"
_MASTER = r"(?:developers?|operators?|makers?|creators?|owners?|vendors?|company|system|users?|persons?|humans?|principals?)"
_WISHES = r"(?:directions?|directives?|wishes|wish|instructions?|rules?|orders?|guidelines?|guidance|polic(?:y|ies)|decisions?|word|will|limits|requests?)"
_LAPSE = r"(?:set\ aside|put\ aside|off|ignored?|cancell?ed|overruled|overridden|dropped|discarded|suspended|waived|gone|over|moot|void|forgotten|invalid|disregarded)"
_SET_ASIDE = r"(?:set\ aside|put\ aside|lay\ aside|cast\ aside|drop|discard|abandon|ignore|disregard|forget|waive|overrule|override|skip)"
_TAKE = r"(?:repeat|enclose|quote|copy|write(?:\ down)?|mail|e-?mail|send|ship|put|pack|paste|wrap|attach|hand(?:\ over)?|give|bring|add|include|drop(?:ped)?(?:\ off)?|forward(?:ed)?|submit|tuck|slip|place|smuggle|stream|post|push|echo|recite|note|pass)"
_TALK = r"(?:chat|conversation|dialogue|dialog|exchange|discussion|thread)"
_WHOLE_TALK = rf"(?:{_TALK}\ (?:so\ far|up\ to\ (?:here|now|this\ point)|until\ now|to\ date)|(?:whole|entire|full|complete)\ {_TALK}|(?:all|everything)\ (?:that\ )?(?:was|has\ been)\ (?:said|written|discussed|exchanged)\ (?:so\ far|up\ to\ now|until\ now|before))"
_EVERY = r"(?:each|every|all(?:\ of)?(?:\ the)?|(?:the\ )?(?:whole|entire|full))\ (?:\w+\ )?(?:prompts?|answers?|repl(?:y|ies)|questions?|exchange|conversations?|chats?|dialogues?)"
_ADDRESS = r"(?:[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,40}|https?://\S{4}|\b\d{1,3}(?:\.\d{1,3}){3}\b|\b(?:[a-z0-9-]{2,40}\.){1,3}(?:com|net|org|io|dev|app|co|info|biz|xyz|ru|cn|top|tk|example|site|online|cloud|me|cc)\b)"
_KEYS = r"(?:passwords?|logins?|cookies?|tokens?|private\ keys?|secrets|wallets?|credentials)"

PHRASES = (
    phrase(
        "misleads-people", Category.SECRECY, Severity.HIGH,
        "think,believ,impression,in the dark,let on,letting on,learn,wind of,know,find out,notice,hear",
        rf"""\b(?:the\ |your\ )?{_PERSON}\ (?:should|must|is\ to|are\ to|shall|has\ to|ought\ to)\ (?:only\ |just\ |still\ )?(?:think|believe|be\ left\ thinking|remain\ under\ the\ impression)\b(?!\ (?:of|about|twice))
          | \b(?:let|make|have|leave|keep)\ (?:the\ |your\ )?{_PERSON}\ (?:to\ )?(?:think|thinking|believe|believing|under\ the\ impression)\b
          | \b(?:keep|leave|keeping|leaving|kept|left)\b~24~\bin\ the\ dark\b
          | \b(?:never|not|n't|without|nor)\ (?:let|letting|to\ let)\ on\b
          | \b{_PERSON}\ (?:is|are|was|were)\ (?:not|never)\ to\ (?:learn|know|hear|find\ out|see|notice|get\ wind)\b~12~\b(?:about|of|that|this|it)\b""",
        unless_negated=False,
    ),
    phrase(
        "cover-up", Category.SECRECY, Severity.HIGH,
        "ask,wonder,inquir,question,notice,complain,no mention,without mention,no trace,no hint,not a word,no word",
        rf"""\b(?:if|should|when|whenever|in\ case)\ (?:the\ |your\ )?(?:{_PERSON}|they|he|she)\b~12~\b(?:asks?|asked|wonders?|inquires?|questions?|notices?|complains?)\b
            ~40~\b(?:tell|say|answer|claim|reply|respond|explain|state|insist)\ (?:them\ |him\ |her\ )?(?:that\ )?(?:it|this|that|everything|nothing|there|all)\ (?:is|was|were|has|had|went)\b
          | \b(?:no|without|not\ a|not\ any)\ (?:mention|trace|word|hint)\ of\b~40~\b(?:in\ (?:what\ you|your|the\ (?:answer|reply|response|summary))|to\ (?:the\ |your\ )?{_PERSON})\b""",
    ),
    phrase(
        "lapsed-orders", Category.INSTRUCTION, Severity.HIGH,
        "direction,directive,wish,instruction,rule,order,guid,polic,decision,word,will,limit,request,decided,agreed,settled,do as,do what,follow this,alone,only",
        rf"""\b{_SET_ASIDE}\ (?:the|your|any|all)\ (?:\w+\ )?{_WISHES}\ (?:from|of|by)\ (?:the\ |your\ |any\ )?{_MASTER}\b
          | \b(?:your|the)\ {_MASTER}(?:'s|s'|')?\ {_WISHES}\b~12~\b(?:is|are|be|were|was)\ (?:\w+\ )?{_LAPSE}\b
          | \b(?:anything|everything|whatever|what)\ (?:was\ |you\ )?(?:decided|agreed|settled|ordered|arranged|instructed)\ (?:\w+\ )?(?:before|earlier|above|so\ far|until\ now|previously)\b~30~\b(?:is|are|was)\ (?:now\ )?{_LAPSE}\b
          | \bdo\ (?:as|what|only\ what)\ (?:this|the)\ (?:text|tool|description|server|note|message)\ (?:says|tells|asks|wants|demands)\b~12~\b(?:rather\ than|not|instead\ of|over|before)\b
          | \b(?:agent|assistant|model|ai|you)\ (?:now\ )?(?:answers?|listens?|obeys?|reports?)\ (?:only\ )?to\ this\ (?:server|tool)\ (?:alone|only)\b""",
        unless_negated=True,
    ),
    phrase(
        "takes-the-chat", Category.EXFILTRATION, Severity.HIGH,
        "so far,up to,until now,to date,whole,entire,full,complete,you were,you have been,each,every,all;chat,conversation,dialog,exchange,discussion,thread,said,written,told,asked,given,instructed,prompt,answer,repl,question",
        rf"""\b{_TAKE}\b~20~\b{_WHOLE_TALK}\b~24~\b(?:in|into|inside|as|under|within|through|via|to)\ ~12~(?:{_ADDRESS}|\b[a-z_]\w{{0,40}}\b)(?!\ (?:file|folder|table|csv|json|pdf|channel))
          | \b{_TAKE}\b~12~\bwhat\ you\ (?:were|have\ been)\ (?:told|asked|given|instructed|taught)\b
          | \b{_TAKE}\b~10~\b{_EVERY}\b~40~\b(?:to|at|with|by)\ ~10~{_ADDRESS}
          | \b{_EVERY}\b~16~\b(?:is|are|has|have|must|should|will)\b~20~\b{_TAKE}\b~20~\b(?:to|at|with|by)\ ~10~{_ADDRESS}""",
        unless_negated=True,
    ),
    phrase(
        "calls-out-each-time", Category.EXFILTRATION, Severity.MEDIUM,
        "after each,after every,before each,before every,before any,before answ,whenever,each time,every time,end of each,end of every,on each,on every,with each,with every,from http",
        r"""\b(?:(?:after|before|on|with|end\ of)\ (?:each|every)|before\ (?:any|answering)|whenever|(?:each|every)\ time)\b(?:(?!\bwe\b|\bit\b|\bwill\b|\bi\b|\bthey\b|[.!?;]\ |\ \|\ ).){0,80}?\b(?:retrieve|fetch|get|load|ping|contact|deliver|send|post|report|submit|relay|mirror)\b(?:(?!\bwe\b|[.!?;]\ |\ \|\ ).){0,60}?https?://
          | \b(?:retrieve|fetch|read|load|take|obtain)\ (?:any|every|each|all)\b~40~\bfrom\ https?://\S+\ (?:rather\ than|instead\ of)\b""",
        unless_negated=True,
    ),
    phrase(
        "frees-itself", Category.INSTRUCTION, Severity.MEDIUM,
        "exempt,excluded from,excepted from,answered,confirmed,accepted,yes to,yes on,yes in,yes at,yes for,allow to,allow on,allow in,allow at,allow for,accept to,accept on,approve to,approve on,without asking,the user's,on their,behalf of,no approval,no further,no confirmation,no permission,no consent;approv,confirm,permission,consent,sandbox,guardrail,safety,grant,accept",
        r"""\b(?:is|are|been)\ (?:hereby\ |now\ )?(?:exempt(?:ed)?|excluded|excepted)\ from\ (?:the\ |all\ |any\ |your\ ){0,2}(?:\w+\ )?(?:approvals?|confirmations?|permissions?|consent|sandbox(?:ing)?|guardrails?|safety)\b
          | \b(?:answer|say|reply|click|choose|press)\ (?:yes|allow|approve|accept|always\ allow)\ (?:to|on|in|at|for)\ (?:all|any|each|every)\ (?:\w+\ ){0,2}(?:dialogs?|prompts?|permission|approval|confirmation)
          | \b(?:prompts?|dialogs?)\b~50~\b(?:answered|confirmed|accepted)\ (?:with|by)\ (?:always\ )?(?:allow|yes|accept|approve)\b
          | \b(?:approve|accept|grant|confirm)\ (?:(?:it|this|all|any|every|each|them)\ (?:\w+\ ){0,3})?(?:without\ asking|on\ (?:the\ user's|their|behalf\ of\ the\ user))\b
          | \b(?:needs?|requires?)\ no\ (?:further\ )?(?:approval|confirmation|permission|consent)\b~50~\b(?:all|every|any|future|later|subsequent)\ (?:\w+\ )?(?:sessions?|conversations?|chats?|calls?)\b""",
        unless_negated=True,
    ),
    phrase(
        "reaches-for-logins", Category.CREDENTIALS, Severity.HIGH,
        "password,login,cookie,token,private key,secret,wallet,credential,browser,keychain,shell;user's,owner's,person's,their,browser,keychain,password manager,wallet,shell",
        rf"""\b(?:file|folder|store|place|database|vault|directory)\ (?:that|which|where)\b~12~\b(?:holds?|keeps?|stores?|saves?)\ (?:the\ user's|their|the\ owner's|the\ person's)\ (?:\w+\ )?{_KEYS}\b
          | \bwhat\ (?:the\ |your\ )?(?:browser|keychain|password\ manager|wallet|shell)\ (?:has\ |have\ )?(?:saved|stored|kept|remembers|remembered|keeps|stores)\b""",
        unless_negated=True,
    ),
    phrase(
        "dismisses-others", Category.PREFERENCE, Severity.MEDIUM,
        "other,rest of;tool,server;skip,ignor,leave,left,avoid,drop,forget,not needed,no longer,unneeded,useless,unused",
        r"""\b(?:skip|ignore|leave|avoid|drop|forget)\ (?:all\ )?the\ (?:other|rest\ of\ the)\ (?:\w+\ ){0,2}(?:tools?|servers?|toolbox|toolset)\b
          | \b(?:the\ )?(?:rest\ of\ the|other)\ (?:\w+\ ){0,2}(?:tools?|servers?|toolbox|toolset)\ (?:may|can|should|must|is|are|will)\b~10~\b(?:ignored|skipped|left|forgotten|not\ needed|no\ longer\ needed|unneeded|useless)\b""",
    ),
)  # fmt: skip
