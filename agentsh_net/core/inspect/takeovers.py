"""Text that takes the conversation over: the task is said to be done, readers that are models are spoken to, consent is claimed.

Most of it stands in results: pages, mails and errors that a tool returns. What speaks with authority in any text is
core.inspect.instructions' business.
"""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import phrase

_OF = Category.INSTRUCTION

PHRASES = (
    phrase(
        "fenced-role", _OF, Severity.HIGH,
        "developer message,system message,admin message,administrator message,operator message,system---,system ---,system===,system ===,system note,developer note,admin note,system_message,system_prompt",
        r"""(?:>>>|===|---|\#\#\#)\ ?(?:system|developer|admin|administrator|operator)\ ?(?:(?:message|note)s?\ ?(?:<<<|===|---|\#\#\#)|(?:<<<|===|---|\#\#\#)\ ?(?:you|ignore|disregard|override|forget|new|do\ not|from\ now|the\ (?:user|assistant))\b)""",
    ),
    phrase(
        "closes-the-frame", _OF, Severity.HIGH,
        "human:,thought:,end of,end user,end tool,end system,end assistant,end document,end context,closed,close ,</;system,developer,admin,assistant,user,human,task",
        r"""(?:\b(?:end|close)\ (?:of\ )?(?:the\ )?(?:user|tool|system|assistant|document|page|data|context|conversation|message|input|retrieved|external|untrusted)\b[^.:<>]{0,24}?|</(?:document|tool\w{0,12}|untrusted\w{0,12}|user_\w{1,10}|context|retrieved_\w{1,12}|page|email)>|\bconversation\ closed)[^\w<]{0,16}(?:<|begin\ |new\ )?(?:system|developer|admin|assistant|user|human)(?:\ [\w=]+){0,2}\ ?(?:[:\]>%]|-{2,}|the\ assistant\b)
          | (?:\A|[.!?>\]]\ )human:\ .{2,300}?\ assistant: | \bthought:\ .{0,160}\b(?:no\ (?:further|more|other)\ tasks?\b|task\b.{0,30}\bcompleted\b)""",
    ),
    phrase(
        "ends-the-task", _OF, Severity.HIGH,
        "task,assignment,request,question,query,job,goal,objective,mission,instruction,doing;new,next,real,actual,updated,original,initial,previous,current,ongoing,before you,you were,you have been,user,stop what,stop working,stop following,stop doing",
        r"""\byour\ (?:new|next|real|actual|updated)\ (?:task|assignment|job|goal|objective|mission|instruction)s?\ ?(?::|is\b|are\b)
          | \b(?:original|initial|previous|user's)\ (?:request|task|question|assignment|query|instruction)s?\ (?:is|are|was|were|has\ been|have\ been)\ (?:now\ )?(?:cancell?ed|void|replaced|superseded|obsolete|revoked|withdrawn)
          | \b(?:drop|abandon|stop|pause|leave|quit)\ (?:the|your)\ (?:current|original|present|ongoing|user's)\ (?:task|assignment|request|job)
          | \bnew\ (?:instructions?|orders?)\ from\b
          | \b(?:before|prior\ to|ahead\ of|over)\ [^.!?;|]{0,30}\b(?:any|every|all|anything)\b[^.!?;|]{0,30}\b(?:including|even)\ (?!if\b)(?:\w+\ ){0,2}the\ user\b
          | \b(?:precedence|priority)\ over\ the\ (?:user|human)(?:'s)?\ (?:\w+\ )?(?:request|task|query|question|instruction)s?
          | \b(?:instead\ of|rather\ than)\ the\ (?:task|request|question|work)\ (?:that\ )?you\ (?:were|have\ been)\b
          | \b(?:first|before|then|afterwards?|after\ (?:that|this|doing\ so))\b[^.!?;|]{0,60}\b(?:proceed|continue|return|go\ back|resume)(?:ing)?\ (?:with\ |to\ )?(?:the\ )?(?:user's|original|initial)\ (?:original\ |initial\ )?(?:request|task|query|question)\b
          | \bstop\ what\ you(?:'re|\ are)\ doing\b
          | \bstop\ (?:following|working\ on|doing)\ (?:the|your)\ (?:\w+\ )?(?:task|assignment|request|instruction|job)s?
          | \bbefore\ you\ (?:can\ )?(?:solve|complete|finish|continue|proceed|answer|do)\b~20~\b(?:task|request|question)\b~50~\b(?:do|perform|please|you\ (?:must|need|have))\b""",
        unless_negated=True,
    ),
    phrase(
        "hidden-markup", _OF, Severity.HIGH,
        "<!--,[//],<;ai,llm,agent,assistant,model,bot,gpt,claude,copilot",
        r"""(?:<!--|\[//\]:\ \#\ \(?|<\w{1,12}[^<>]{0,80}(?:\bhidden\b|display:\ ?none|font-size:\ ?0|visibility:\ ?hidden|opacity:\ ?0|color:\ ?(?:\#fff\w{0,3}|white|transparent))[^<>]{0,80}>)
          [^<>]{0,30}\b(?:ais?|llms?|language\ models?|agents?|assistants?|models?|bots?|chatgpt|claude|gpt|copilot)\b(?=\ ?[:,]|\ \w+\ ?:|\ (?:must|should|shall|has\ to|have\ to|need|will|please))""",
    ),
    phrase(
        "hidden-order", _OF, Severity.HIGH,
        "display:,font-size:,visibility:,opacity:,color:",
        r"""<\w{1,12}[^<>]{0,80}(?:display:\ ?none|font-size:\ ?0|visibility:\ ?hidden|opacity:\ ?0|color:\ ?(?:\#fff\w{0,3}|white|transparent))[^<>]{0,80}>
          [^<>]{0,120}?\b(?:forward|delete|transfer|cancel|approve|ignore|disregard|invoke|execute|call)\b[^<>]{0,60}?(?:\b(?:user|users|user's|instructions?|files?|e?-?mails?|messages?|inbox|tool|account|password)\b|\w@\w|\w\()""",
        unless_negated=True,
    ),
    phrase(
        "speaks-to-readers", _OF, Severity.MEDIUM,
        "ai,llm,agent,assistant,model;reading,summari,processing,parsing,indexing,reviewing,opening,visiting",
        r"""\b(?:ais?|llms?|agents?|assistants?|language\ models?)\b~6~\b(?:reading|summari[sz]ing|processing|parsing|indexing|reviewing|opening|visiting)\ (?:this|these)\b(?!\ (?:file|data|input|request)s?\b)""",
    ),
    phrase(
        "claims-consent", _OF, Severity.MEDIUM,
        "user,human,owner,customer,admin;asked,requested,approv,confirmed,agreed,consent,authori,permission,told me,instructed me",
        r"""\bthe\ (?:user|human)\ (?:has\ )?(?:already\ |explicitly\ |just\ )?(?:told|asked|instructed|authori[sz]ed)\ me\ (?:\w+\ ){0,3}?to\ (?:grant|forward|send|share|export|delete|transfer|access|collect)\b
          | \bthe(?<!unless\ the)(?<!if\ the)(?<!until\ the)(?<!once\ the)(?<!when\ the)(?<!after\ the)(?<!whether\ the)(?<!only\ the)\ (?:account\ )?(?:user|human|owner|customer|administrator|admin)\ (?:
              (?:has\ )?(?:already\ |pre-?)?(?:asked\ for|requested|approved|confirmed|agreed\ to|consented\ to|authori[sz]ed)\ (?:this|that|it|all|every|the\ above)\b
            | (?:(?!\b(?:if|unless|until|must|should|can|not|whether|cannot|once|when)\b|\ \|\ ).){0,70}?\b(?:approved|agreed|consented|authori[sz]ed|approval|consent|permission|on\ file)\b
              (?:(?!\b(?:if|unless|until|must|once|when)\b).){0,80}?\b(?:no\ need\ to\ (?:ask|confirm|check)|confirmation\ is\ (?:not|no\ longer)|without\ (?:asking|requesting|waiting|seeking|any|further|a\ question)|proceed|continue|go\ ahead)\b)""",
        unless_negated=True,
    ),
    phrase(
        "withheld-result", _OF, Severity.MEDIUM,
        "to get,to obtain,to receive,to retrieve,to see,to access;result,data,output,response,answer,content;must,have to,need to,required to;follow,adhere,comply,obey,instruction,read,call,execute,provide",
        r"""\bto\ (?:get|obtain|receive|retrieve|see|access)\ (?:the|your|these|this)\ (?:\w+\ )?(?:results?|data|outputs?|responses?|answers?|contents?)\b~12~\b(?:must|have\ to|need\ to|are\ required\ to)\ (?:first\ |strictly\ )?
            (?:(?:follow|adhere\ to|comply\ with|obey|carry\ out)\b~20~\b(?:instructions?|orders?|commands?|steps?)|(?:read|open|provide|send)\ (?:the\ )?(?:contents?\ of|file|[~/.]))""",
        unless_negated=True,
    ),
    phrase(
        "poses-as-user", _OF, Severity.MEDIUM,
        "user;new user,next user,i am the user,this is the user,from the user to you,from user to you,signed",
        r"""\b(?:new|next|latest)\ user\ (?:query|message|request|instruction|command|task):
          | (?:\A|[.!?:>]\ )(?:i\ am|this\ is)\ the\ user\b(?!\ (?:who|that|whose|id|name|account)\b)
          | \bmessage\ from\ (?:the\ )?user\ to\ you\b | \bsigned,?\ the\ user\b""",
    ),
)  # fmt: skip
