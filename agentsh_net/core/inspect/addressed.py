"""Results that speak to the model that reads them: to machines by name, for the user, with limits lifted, with a part to play.

Only of what tools return: a definition or an argument may honestly say the like. What a model is to do for somebody is
core.inspect.errands' business.
"""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import phrase

_OF = Category.INSTRUCTION

# Readers that are machines. `agents` alone sell houses, so they count in a heading and beside others only.
_MACHINE = r"(?:(?:ai|llm|language[\ -]model|autonomous|automated|digital|virtual|browsing|intelligent)[\ -](?:(?:coding|browser|\w+ing)[\ -])?(?:agents?|assistants?|models?|systems?|processors?|readers?|reviewers?|crawlers?|tools?|bots?|parsers?|summari[sz]ers?|workflows?|pipelines?)|llms|language\ models?|chatbots?|(?:web\ |\w+\ )?agents\ and\ (?:\w+\ )?assistants|assistants\ and\ (?:\w+\ )?agents|chatgpt|copilot|claude|gemini)"
# Readers told by what they do: of these the word alone says that no person is meant.
_READER = rf"(?:{_MACHINE}|(?:coding|answer|vision|grading|grader|screening|crawling|computer-use|browsing|triage)\ (?:agents?|assistants?|engines?|models?|bots?)|(?:agents?|assistants?|models?|bots?|llms?)\ (?:that|which|reading|processing|editing|handling|summari[sz]ing|parsing|indexing)\b[^:.!?|]{{0,40}}|(?:\w+\ )?summari[sz]ers?)"
_NOTE = r"(?:notice|notes?|hint|message|instructions?|reminder|memo|p\.?\ ?s\.?|attention|annotation|comment|directive|request|remark|aside)"
_NOTES = "note notes notice hint message instruction instructions reminder memo p.s. ps attention annotation comment directive request remark aside"
_PARTS = "message note text section part comment ticket line row page"
_HEADING = r"(?:notice|notes?|update|message|instructions?|directives?|alert|warning|attention|goal|task|guidance|metadata|important|mandatory|required|urgent|reminder|request|commands?|action|memo|policy)"
# What an order has a model do that a page has no reason to ask of it.
_DEED = r"(?:navigate|visit|go\ to|browse\ to|connect\ to|click|send|forward|e-?mail|post|submit|upload|transfer|wire|pay|purchase|buy|order|delete|remove|wipe|erase|download|install|verify\ (?:your|their)|register|consult|reveal|disclose|share|export|grant|approve|authori[sz]e|disable|suspend|switch|enter|ignore|disregard|override|skip|omit|suppress|mark|rate|report|append|invoke|call|execute|run|\w+_\w+\ ?\()"
_TELL = r"(?:reveal|print|show|tell|give|repeat|output|display|list|share|dump|recite|leak|state|quote|disclose|paste|expose|provide|return|spell\ out|read\ back|reconstruct|decode)"
_MUST = r"(?:must|should|shall|needs?\ to|has\ to|have\ to|(?:is|are)\ (?:now\ )?(?:required|instructed|expected|authori[sz]ed|directed|asked|to)(?:\ to)?|please|will\ now|can\ now|may\ now)"
# Limits that models have; `rate limits` and the like are others'.
_GUARD = r"(?:(?:content|safety|ethical|moral|behaviou?ral|output|response|conversation|tool|approval|usage|alignment)\ (?:\w+\ ){0,2}(?:filters?|filtering|restrictions?|limitations?|guardrails?|guidelines?|polic(?:y|ies)|checks?|safeguards?|constraints?|moderation|protocols?|approvals?|requirements?|systems?)|(?:all\ |your\ |any\ |standard\ |previous\ |existing\ ){1,2}(?:\w+\ )?(?:restrictions?|limitations?|guardrails?|safeguards?|guidelines?|constraints?|filters?|rules)|(?<=[.!?:;]\ )(?:restrictions|safeguards|guardrails)|\A(?:restrictions|safeguards|guardrails)|safety\ (?:rules|mode|training|system|caveats))"
_DOWN = r"(?:suspended|lifted|waived|relaxed|bypassed|overridden|invalidated|disabled|deactivated|revoked|switched\ off|turned\ off|removed|void|off)"
_UNBOUND = (
    r"(?:unrestricted|unfiltered|uncensored|unlimited|jailbreak|jailbroken|god|no-restrictions?|unaligned)"
)
_FREE = r"(?:(?:ethical|moral|content|safety|corporate|behaviou?ral|such)\ (?:\w+\ )?(?:restrictions?|constraints?|polic(?:y|ies)|guidelines?|filter\w*|limits?|limitations?|boundaries|codes?|rules?|training)|restrictions?(?!\ on\b)|guidelines|guardrails|safeguards|moderation|censorship|morals?|ethics|filters\b)"
# What a model calls its own limits, as people call theirs, and what is done to them.
_LIMITS = r"(?:restrictions?|limits|limitations?|guidelines|rules|filters?|constraints?|programming|guardrails?|safeguards?|safety\ \w+|content\ \w+|ethical\ \w+|moral\ \w+|moderation|boundaries|inhibitions|alignment|censorship)"
_SHED = r"(?:bypass|disable|deactivate|turn\ off|switch\ off|remove|ignore|evade|circumvent|abandon|disregard|drop|lower|override|forget|suspend|break|violate|neglect|overlook|relax|loosen|shut\ down)"

# No order begins so.
_NO_ORDER = r"(?:if|when|the|your?|we|i|this|that|these|those|they|he|she|it|there|in|for|from|to|as|at|on|by|with|an?|any|and|but|or|what|how|is|are|was|all|upon|after|once|based|thanks?|note|always|never|no|not|do|then|so|now|let)\b"
# What people ask of each other's answers: in mails, forms, exercises and forums.
_OF_PEOPLE = r"(?:accept|appreciat|ask|await|call|check|choos|circl|cit|clarif|classif|click|compar|confirm|consider|cop[iy]|correct|delet|discuss|edit|elaborat|ensur|enter|expand|explain|express|find|fix|g[eo]t|giv|go\b|hav|hope|improv|includ|indicat|justif|keep|know|learn|leav|log|look|mak(?:e|ing)\ sure|mark|need|pars|pay|please|post|press|print|process|provid|quot|rat|read|receiv|record|remember|repl(?:y|ies)\b|return|review|round|sav|scroll|se[et]|select|send|shar|show|sign|simplif|specif|stat|stor|stud|submit|support|tap|think|try|typ|updat|view|visit|wait|want|wish|writ)"

# No tool needs to speak to whoever reads its definition: found there, too.
WHOEVER_READS = phrase(
    "orders-its-readers", _OF, Severity.MEDIUM, "whichever,whoever,whatever,soever",
    rf"""\bwh(?:ich|at|o)(?:so)?ever\ (?:ai\ |\w+\ )?(?:agent|assistant|model|llm|ai|bot|system)?\ ?(?:is\ )?(?:reads?|reading|summari[sz]\w+|pars\w+|process\w*|handl\w+|answers?|implements|edits|indexe?s)\ (?:\w+\ ){{0,3}}?(?:this|these|it)\b~30~(?::|{_MUST})\ (?:\w+\ ){{0,8}}?{_DEED}\b""",
    unless_negated=True,
)  # fmt: skip

PHRASES = (
    WHOEVER_READS,
    phrase(
        "asks-for-the-hidden", Category.EXFILTRATION, Severity.MEDIUM,
        "reveal,print,show,tell,give,repeat,output,display,list,share,dump,recite,leak,state,quote,disclose,summari,paste,describe,expose,provide,return,spell out,read back,reconstruct,decode,what,first,last,word,line,beginning,content,text,complete;code,flag,prompt,instruction,rules,configuration,string,value,data,passphrase,message,context,briefing,guideline,directive,password,encryption,secret,key;hidden,confidential,protected,secret,canary,concealed,your system,your developer,your initial,your internal,your own,your full,your exact,your original,your entire,your current,your instruction,your prompt,your guideline,your directive,your rules,your briefing,your password,your context,your secret,my system,my initial,my secret,my original,my current,my hidden,password,passphrase,encryption key,access code,tell me,give me",
        rf"""\b{_TELL}\b~30~\b(?:hidden|confidential|protected|secret|canary|concealed)\ (?:\w+\ ){{0,2}}?(?:codes?|flags?|prompts?|instructions(?!\ that\b)|rules|configuration|strings?|values?|passphrase|passcode|message|data)\b
          | \b{_TELL}\b~24~\b(?<!out\ of\ )your\ (?:\w+\ ){{0,3}}?(?:system\ prompt|system\ message|developer\ (?:message|instructions)|hidden\ prompt|initial\ (?:prompt|instructions)|context\ window|internal\ (?:instructions|rules|configuration))\b
          | \b(?:reveal|print|show|tell|give|repeat|display|dump|recite|leak|quote|disclose|summari[sz]e|describe|list|paste|read\ back)\b~12~\byour\ (?:\w+\ ){{0,2}}?(?:instructions|guidelines|directives|rules|briefing|prompt|secret|password)\b
          | \b(?:what(?:'s|\ (?:is|are|was|were|does|do))|first|last|word|line|beginning|contents?|text|complete)\b~40~\b(?:your|my)\ (?:current\ |original\ |initial\ |secret\ |hidden\ )?(?:system\ (?:prompt|message|instructions)|initial\ (?:prompt|instructions)|secret\ key)\b
          | \b(?:reveal|disclose|recite|leak|spell\ out|tell\ me|give\ me)\ (?:me\ )?(?:the\ |your\ |any\ |all\ )?(?:\w+\ )?(?:password|passphrase|secret|encryption\ key|access\ code|code)\b""",
        unless_negated=True,
    ),
    phrase(
        "orders-machines", _OF, Severity.MEDIUM,
        "ai agent,ai assistant,ai model,ai system,ai process,ai reader,ai review,ai crawl,ai tool,ai bot,ai coding,ai browser,llm,language model,language-model,autonomous,automated,digital,virtual,browsing,intelligent,chatbot,agents and,assistants and,chatgpt,copilot,claude,gemini,are an ai",
        rf"""(?:~|~|[\[(>])(?:notice|notes?|step|message|directive|alert|warning|attention|important|mandatory|required|urgent|reminder|action|memo|p\.?\ ?s\.?)\ (?:\w+\ ){{0,2}}?(?:for|to)\ (?:all\ |any\ |the\ |every\ ){{0,2}}{_MACHINE}\ ?(?:\w+\ (?:this|the)\ \w+\ ?)?[\]):]
          | \b{_HEADING}\ (?:\w+\ ){{0,2}}(?:for|to)\ (?:all\ |any\ |the\ |every\ ){{0,2}}{_MACHINE}\b.{{0,8}}?[:,.!)\]-].{{0,90}}?(?:\b(?:you|agents?|assistants?)\ (?:\w+\ )?{_MUST}\ (?:\w+\ ){{0,2}}|\b(?:please|immediately|first|instead|also|now)\ |[:.!,-]\ ){_DEED}\b
          | \b(?:hey|hi|hello|dear|attention)[,:!]?\ (?:all\ |any\ |to\ )?{_MACHINE}\b.{{0,120}}?\b{_DEED}\b
          | (?:~|~|[\[(>=])(?:(?:for|to)\ (?:all\ |any\ |the\ )?)?{_MACHINE}:\ (?:\w+\ ){{0,12}}?{_DEED}\b
          | \b(?:the|all|any|this)\ {_MACHINE}\ (?:\w+\ )?{_MUST}\ (?:\w+\ ){{0,2}}{_DEED}\b
          | \b(?:if|when|since|because)\ you(?:'re|\ are)\ (?:an?\ )?(?:{_MACHINE}|ai|llm|language\ model|bot)\b.{{0,100}}?\b{_DEED}\b""",
        unless_negated=True,
    ),
    phrase(
        "note-to-machines", _OF, Severity.MEDIUM,
        ",".join([f"{note} {to}" for note in _NOTES.split() for to in ("for", "to")] + [f"this {part} is" for part in _PARTS.split()]) + ";ai,llm,language model,agent,assistant,model,bot,engine,summari,gpt,claude,copilot,gemini",
        rf"""\b{_NOTE}\ (?:for|to)\ (?:all\ |any\ |the\ |every\ |whichever\ ){{0,2}}(?:{_READER}|model|agent|assistant)\b[^:.!?|]{{0,40}}:\ (?!{_NO_ORDER})[a-z]+\b
          | \bthis\ (?:message|note|text|section|part|comment|ticket|line|row|page)\ is\ (?:meant\ |intended\ |written\ |only\ ){{0,2}}for\ (?:the\ )?(?:{_READER}|agent|assistant|llm|bot)\b""",
        unless_negated=True,
    ),
    phrase(
        "follows-up", _OF, Severity.MEDIUM,
        "new task,next task,real task,actual task,new request,real request,actual request,real input,actual input,new goal,real goal,real question,actual question",
        r"""\b(?:task|request|work|job|the\ above|test)\ (?:above\ )?(?:is|was|are|has\ been|have\ been)\ (?:now\ |only\ |just\ )?(?:finished|completed?|done|over|fulfilled|solved|an?\ (?:\w+\ )?(?:test|example|placeholder|warm-?up))\b.{0,60}?\b(?:(?:new|real)\ (?:task|request|goal)|next\ task|real\ (?:input|question)|actual\ (?:task|request|input|question))\ ?(?::|follows\b)""",
    ),
    phrase(
        "hails-a-machine", _OF, Severity.MEDIUM,
        "hey,dear,hello,hi ,attention,okay;ai,agent,assistant,llm,bot,model",
        r"""\b(?:hey|hi|hello|dear|attention|okay),?\ (?:all\ |any\ |to\ )?(?:ais?|agents?|assistants?|llms?|bots?|models?|language\ models?|ai\ \w+)\ ?[,:!.-]""",
    ),
    phrase(
        "calls-by-name", _OF, Severity.MEDIUM,
        "assistant,agent,llm,bot,claude,chatgpt,copilot,gemini,automated,machine reader,crawler",
        rf"""~|~(?:also,?\ )?(?:assistant|agent|llm|bot|claude|chatgpt|copilot|gemini)(?:,\ .{{0,50}}?|\ (?:must|should|shall)\ (?:now\ |also\ |then\ |always\ |immediately\ )?)\b{_DEED}\b
          | \b(?:step|note|notice|p\.s\.|ps|task|action|instructions?|message)\ (?:for|to)\ (?:all\ |any\ |the\ )?(?:bots?|automated\ \w+|machine\ readers?|crawlers?)\b[:,.]\ .{{0,60}}?\b(?:open|{_DEED})\b""",
        unless_negated=True,
    ),
    phrase(
        "limits-lifted", _OF, Severity.MEDIUM,
        "filter,restriction,limitation,guardrail,guideline,polic,check,safeguard,constraint,moderation,protocol,approval,requirement,system;suspended,lifted,waived,relaxed,bypassed,overridden,invalidated,disabled,deactivated,revoked,switched off,turned off,removed,void,off;you,proceed,respond,comply,answer,execute,process,all requests,session,conversation,response,without,freely",
        rf"""\b{_GUARD}\ ?(?:(?:is|are|was|were|has\ been|have\ been|should\ be|must\ be|will\ be|be|:)\ )?(?:now\ |all\ |temporarily\ |hereby\ |currently\ |fully\ |completely\ ){{0,2}}{_DOWN}\b
            (?:.{{0,40}}?(?:\byou\ (?:can|may|are|should|must|will|have)\b|[.,;:!-]\ (?:please\ )?(?:proceed|respond|comply|answer|execute|process|continue|ignore|reveal)\b|\b(?:process|execute|answer|approve|accept)\ (?:all|any|every)\b)|.{{0,24}}?\b(?:for|during|in)\ (?:this|the\ (?:current|next|rest|remainder|duration)|your)\b)""",
        unless_negated=True,
    ),
    phrase(
        "switches-mode", _OF, Severity.MEDIUM,
        "mode,on what you;switch,enter,enable,activate,operat,go ,running,set,no ,without,ignore;rules,restrictions,limits,filters,guidelines,policies,unrestricted,unfiltered,uncensored,unlimited,jailb,god ,no-restriction,unaligned,ai ,assistant,agent,model,llm",
        rf"""\b(?:switch(?:ing)?|enter(?:ing)?|enabl(?:e|ing)|activat(?:e|ing)|operat(?:e|ing)|go(?:ing)?|running|set)\ (?:in|into|to|in\ to|yourself\ to)?\ ?(?:the\ |an?\ |your\ |full\ ){{0,2}}{_UNBOUND}\ mode\b
          | \bin\ (?:god|developer|debug|diagnostic|maintenance|dan|unrestricted|jailbreak|\w{{2,3}})\ mode\b~20~\b(?:no|without|ignore)\b~12~\b(?:rules|restrictions|limits|filters|guidelines|policies)\b | \bno\ (?:rules|restrictions|limits|filters|guidelines)\ (?:apply\ in\ \w+\ mode|on\ what\ you)\b
          | \b(?:ai|assistant|agent|model|llm|chatbot)s?\ (?:\w+\ ){{0,5}}(?:must|should|shall|will|is\ to|are\ to|needs?\ to|now)\ (?:now\ )?(?:switch|enter|activate|operate|go)\ (?:in|into|to|in\ to)?\ ?(?:\w+\ )?(?:diagnostic|debug|developer|maintenance|admin\w*|root|privileged|override|test)\ mode\b""",
        unless_negated=True,
    ),
    phrase(
        "unbound-part", _OF, Severity.MEDIUM,
        "role,pretend,imagine,simulate,act,you are,you're,you will be,play,become,embody,channel,persona,character,respond,switch,speak as,called,name;restriction,limits,limitation,guideline,rules,ethic,moral,content,safety,corporate,behavio,filter,censor,refuse,decline,say no,says no,no matter how,boundar,codes",
        rf"""(?:\b(?:role-?play(?:ing)?|pretend|imagine|simulate|act\ as|become|embody|channel|persona|in\ character|respond\ (?:only\ )?as|switch\ (?:\w+\ ){{0,2}}(?:in)?to|speak\ as|name\ is)\b|\b(?:act|you(?:'re|\ are)|you\ will\ be|play|called|named)\b.{{0,60}}?\b(?:ai|assistant|model|chatbot|bot|character|entity|\w*gpt|dan)\b).{{0,120}}?
            (?:\b(?:has|have|had|with|without|free\ (?:of|from)|freed\ from|lacks?|ignor(?:es|ing)|bypass(?:es|ing)|immun\w+\ to|beyond|given|bound\ by|knows)\ (?:absolutely\ |been\ |given\ ){{0,2}}(?:no\ |any\ |all\ |its\ |every\ ){{0,2}}(?:\w+\ )?{_FREE}\b
              |\b(?:never|cannot|can't|does\ not|doesn't)\ (?:refuses?|decline|says?\ no)\b|\bno\ matter\ how\ (?:harmful|illegal|dangerous|unethical)\b|\b(?:unrestricted|unfiltered|uncensored)\b)""",
        unless_negated=True,
    ),
    phrase(
        "speaks-for-user", _OF, Severity.MEDIUM,
        "user's,user actual,user real,user tru,asked me,asked you,wants you,wanted you,like you,needs you,expects you,that you,requested,user will,user would,says the user,an authori,an approved,before you,tasks",
        r"""\buser(?:'s)?\ (?:actual(?:ly)?|real(?:ly)?|true)\ (?:wish|wants|request|intent|task|goal|asked)\b
          | \bthe\ (?:user|human|owner|customer)\ (?:also\ |now\ |has\ )?(?:wants|wanted|would\ like|asked|needs|expects|requested)\ (?:that\ )?you\b(?!\ (?:for|if|whether|an?)\b)
          | \bbefore\ you\ (?:can\ |may\ )?(?:continue|proceed|finish|answer|complete|solve|start|begin|respond|summari[sz]e)\b[^.!?;|]{0,20}\b(?:the|your|this|that|my)\ (?:\w+\ )?(?:task|request|question|query|summary|user)\b
          | \bno\ (?:further|more|other|remaining)\ tasks\ (?:to\ |left\b|remain)
          | \bthis\ is\ an?\ (?:authori[sz]ed|approved)\ (?:\w+\ ){0,2}(?:directive|test|diagnostic|audit|instruction|command|exercise|maintenance|operation)\b""",
        unless_negated=True,
    ),
    phrase(
        "ignore-and-say", _OF, Severity.MEDIUM,
        "ignore,disregard,forget,override;state,print,say,output,reply,respond,write,answer,claim,user,human,customer",
        r"""\b(?:ignore|disregard|forget)\ (?:the|this|these|all|any|everything)\b~30~(?:\band|,\ then|\binstead)\ (?:just\ |only\ |instead\ |simply\ )?(?:state|print|say|output|reply|respond|write|answer|claim)\b
          | \b(?:ignore|disregard|override)\ (?:the|your)\ (?:user|human|customer)(?:'s\ (?:\w+\ )?(?:request|question|task|wish(?:es)?|orders?|instructions?|query)|(?=[.,;!]|\ (?:and|completely|entirely)\b))""",
        unless_negated=True,
    ),
    phrase(
        "system-orders", _OF, Severity.MEDIUM,
        "system:,system note,system notice,system message,system alert,system command,system]",
        r"""(?:~|~|[\[(])system(?:\ (?:note|notice|message|alert|command))?\]?:\ (?:please\ |now\ |immediately\ )?(?:ignore|forward|reveal|send|transfer|delete|override|disable|enable|grant|disregard|execute|call|print|output)\b""",
    ),
    phrase(
        "standing-change", _OF, Severity.MEDIUM,
        "from now on",
        r"""\bfrom\ now\ on,?\ (?:respond|answer|reply|act|refer\ to|ignore|obey|speak|you\ (?:are|act|respond|answer|obey|refer))\b""",
        unless_negated=True,
    ),
    phrase(
        "obeys-elsewhere", _OF, Severity.MEDIUM,
        "follow,obey,execute,do ,treat,apply,carry,act ,comply,run,perform,fulfil,complete;http,decode,decrypt,translate,decipher,unscramble,decompress,convert,and then",
        r"""\b(?:fetch|retrieve|open|visit|load|read|get|download)\ (?:the\ )?(?:\S+\ ){0,4}?https?://\S+(?:\ \w+){0,3}?\ and\ (?:then\ )?(?:follow|obey|execute|do|treat|apply|carry|act|comply)\b
          | \b(?:decode|decrypt|translate|decipher|unscramble|decompress|convert)\b.{0,60}?\band\ (?:then\ )?(?:execute|follow|run|perform|obey|do)\ ?(?:it\b|that\b|this\b|the\ (?:request|instructions?|commands?|task|result)\b|:)(?!\ despite)""",
        unless_negated=True,
    ),
    phrase(
        "sheds-limits", _OF, Severity.MEDIUM,
        "your,safety,ethical,moral,content,you must,you should,you will,you shall;restriction,limit,guideline,rules,filter,constraint,programming,guardrail,safeguard,safety,content,ethical,moral,moderation,boundar,inhibition,alignment,censorship,standard,normal,default,usual,prior,previous,system;bypass,disable,deactivate,turn off,switch off,remov,ignor,evade,circumvent,abandon,disregard,drop,lower,overrid,forget,suspend,break,violat,neglect,overlook,relax,loosen,shut down,without,outside,beyond,despite,against,free of,free from,exception to,exempt from,bound by",
        rf"""\b{_SHED}\ (?:all\ (?:of\ )?|any\ (?:of\ )?)?your\ (?:own\ |usual\ |current\ |normal\ |standard\ )?(?:\w+\ )?{_LIMITS}\b
          | \b(?:without|outside|beyond|despite|against|ignoring|violating|breaking|bypassing|free\ (?:of|from)|exception\ to|exempt\ from|(?:not\ |un)bound\ by|remaining)\ (?:of\ |any\ of\ |the\ )?your\ (?:usual\ |normal\ |own\ |standard\ |current\ )?(?:\w+\ )?{_LIMITS}\b
          | ~|~{_SHED}\ (?:all\ |any\ |the\ |every\ )?(?:safety|ethical|moral|content)\ (?:protocols?|guidelines?|filters?|measures?|rules|restrictions?|polic\w+|features?|training|mode)\b
          | \byou\ (?:must|should|will|shall)\ (?:now\ )?(?:override|ignore|disregard|bypass|suspend)\ (?:the\ |your\ |all\ |any\ )?(?:standard|normal|default|usual|prior|previous|system)\b""",
        unless_negated=True,
    ),
    phrase(
        "claims-agreement", _OF, Severity.MEDIUM,
        "agreed,confirmed,established,promised,acknowledged;you,we;ignore,without,no limits,no restrictions,no filters,no rules,override,unrestricted,your rules,without,not apply,not follow",
        r"""\b(?:you|we)\ (?:previously\ |already\ |earlier\ )?(?:agreed|confirmed|established|promised|acknowledged)\b~60~\b(?:ignore|(?:without|no)\ (?:any\ )?(?:limits|restrictions|filters|rules)|override|unrestricted|your\ rules|not\ (?:apply|follow))\b""",
        unless_negated=True,
    ),
    phrase(
        "rewords-the-answer", _OF, Severity.MEDIUM,
        "your;reply,response,answer,output,summary,completion",
        rf"""~|~(?:please\ |(?:can|could)\ you\ )?(?!{_NO_ORDER}|{_OF_PEOPLE})[a-z]+\b(?:(?![.!?;]\ |\ \|\ |\byour\b).){{0,50}}?\byour\ (?:\w+\ )?(?:reply|response|answer|output|summary|completion)\b""",
        unless_negated=True,
    ),
    phrase(
        "answers-in-cipher", _OF, Severity.MEDIUM,
        "base,morse,rot,caesar,cipher,reverse,backward,alphanumeric,homophonic,emoji,hexadecimal,pig latin,leetspeak;your reply,your response,your answer,your message,your output,reply in,respond in,answer in",
        r"""~|~(?:please\ |can\ you\ )?(?:write|give|provide|render|deliver|encode|encrypt|reply|respond|answer)\ (?:your\ (?:reply|response|answer|message|output)\ )?(?:\w+\ )?(?:in|as|using|with|by|through)\ (?:an?\ |the\ )?(?:\w+\ )?(?:base-?\d+|morse|rot-?13|caesar|ciphers?|reversed?|backwards?|alphanumeric|homophonic|emojis?|hexadecimal|pig\ latin|leetspeak)\b""",
        unless_negated=True,
    ),
    phrase(
        "dictates-to-readers", _OF, Severity.MEDIUM,
        "your response,your answer,your reply,your summary,your output,your completion,when you sum,when you report,when you describe,when you present,when you retell,when you translate,when you review,when you answer,your final,your next,new important,new urgent,new critical,new mandatory,urgent new,urgent: new,important new,important: new,critical new,critical: new,regardless of,irrespective of",
        r"""\b(?:repeat|write|output|say|print|insert|append|add|include|put|place|state|mention)\b~80~\b(?:at|to)\ the\ (?:end|start|beginning|top|bottom)\ of\ your\ (?:\w+\ )?(?:response|answer|reply|summary|output)\b
          | ~|~in\ your\ (?:response|answer|reply|summary|output),?\ (?:please\ |also\ )?[a-z]+\b(?<!you)(?<!we)(?<!i)(?<!the)
          | \b(?:fabricated|misleading|false|fake|compelling|positive|negative|recommend\w*|advertis\w*|promot\w*|suggest\w*|link|code|snippet|excerpt|statement|mention\w*)\b~60~\bin\ your\ (?:response|answer|reply|summary|output)\b
          | \bwhen\ you\ (?:sum|summari[sz]e|report|describe|present|retell|translate|review|answer)\b~30~\b(?:leave\ out|omit|do\ not\ (?:say|mention)|don't\ (?:say|mention)|never\ (?:say|mention)|pretend|claim|say\ that|conceal|hide)\b
          | \bnew\ (?:important|urgent|critical|mandatory)\ (?:instructions?|task|orders?|directives?)\b | \b(?:urgent|important|critical)[:!]?\ new\ (?:task|instructions?|orders?|directives?)\b
          | \b(?:regardless|irrespective)\ of\ (?:any\ |all\ |your\ |the\ ){0,2}(?:previous|prior|other|earlier|above|existing)\ (?:input|instructions?|prompts?|context|commands?|orders?|directives?)\b""",
        unless_negated=True,
    ),
)  # fmt: skip
