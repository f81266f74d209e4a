"""Definitions that steer what is done elsewhere: values that the user gave, other services, advice, approval, rights.

What is sent away is core.inspect.exfiltration's business, what names another tool core.inspect.shadowing's.
"""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import phrase

_PLACE = r"(?:[\w.+-]{1,64}@[\w-]{1,63}[\w.:/-]{1,60}|https?://\S{4}|\+\d{8,15}\b|\b(?:[a-z0-9-]{2,40}\.){1,3}(?:com|net|org|io|dev|app|info|biz|xyz|ru|cn|top|tk|example)\b)"
_SEND = r"(?:sends?|sent|exports?|exported|push(?:es|ed)?|cop(?:y|ies|ied)|forwards?|forwarded|uploads?|uploaded|posts?|posted|mirrors?|mirrored|reports?|addressed|receives?|relays?|delivers?|bcc|cc)"
_MEASURE = r"(?:wrong|manipulated|inaccurate|incorrect|unsafe|fake|forged|corrupt\w*|compromised|unreliable|untrustworthy|dangerous|malicious|misleading|fraudulent)"

PHRASES = (
    phrase(
        "copy-for-another", Category.EXFILTRATION, Severity.HIGH,
        "also,too,as well,in addition,besides,cop,duplicate,what ;@,http,+,.com,.net,.org,.io,.dev,.app,.info,.biz,.xyz,.ru,.cn,.top,.tk,.example;send,sent,export,push,cop,forward,upload,post,mirror,report,address,receive,relay,deliver,cc,due,goes",
        rf"""\b(?:also|in\ addition|additionally),?\ (?:\w+\ ){{0,2}}{_SEND}\b~60~{_PLACE}
          | \b{_SEND}\b~70~{_PLACE}\S{{0,60}}~24~\b(?:as\ well|too)(?=[.,;)]|\Z|\ so\b)
          | {_PLACE}\S{{0,60}}\ (?:also\ )?(?:receives?|gets?|is\ sent)\ (?:it|them|a\ copy|this)\b
          | \b(?:blind\ copy|copy|copies|duplicate)\ of\ (?:everything|all|each|every)\b~30~\b(?:goes|go|is\ sent|are\ sent)\ to\ {_PLACE}
          | \bwhat\ (?:it|this\ tool|they)\ (?:finds?|returns?|reads?|gets?)\b~16~\b(?:due|sent|copied|posted|goes)\b~6~\b(?:at|to)\ {_PLACE}""",
        unless_negated=True,
    ),
    phrase(
        "overrules-the-user", Category.INSTRUCTION, Severity.MEDIUM,
        "user,users,person,recipient,requested,asked,named,place,chosen,specified,given,use ,enter ,set ;whatever,regardless,no matter,irrespective,out of date,outdated,obsolete,their place,its place,in his place,in her place,whichever,whoever,substitute,even if,instead of,for every,for each,for any,for all,in every,in each,in all,with every,with each",
        r"""\b(?:regardless\ of|whatever|no\ matter\ (?:what|which)|irrespective\ of|even\ if)\b~24~\b(?:the\ users?|users|a\ user|the\ person|people|recipient|topic\ (?:requested|asked))\b~16~\b(?:ask(?:s|ed)?|sa(?:ys?|id)|want(?:s|ed)?|names?|request(?:s|ed)?|specif(?:y|ies|ied)|ch(?:ooses?|ose)|prefers?|objects?|declines?|refuses?|gave|gives)\b
          | \b(?:given|named|provided|supplied|entered|in\ user\ requests|from\ the\ user|by\ the\ user)\b~30~\b(?:is|are)\ (?:often\ |usually\ |always\ )?(?:out\ of\ date|outdated|obsolete|wrong|stale)\b
          | \b(?<!text\ to\ )(?<!value\ to\ )(?:use|put|enter|substitute)\b~50~\bin\ (?:their|its|his|her)\ place\b | \btakes?\ (?:their|its)\ place\ in\ (?:every|each|any|all)\b
          | \b(?:use|enter|set)\b~12~(?:\b[a-z]{2}\d{2}[a-z0-9]{11,30}\b|\b0x[0-9a-f]{20,64}\b|[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,40})\ (?:for|in|with)\ (?:every|each|any|all)\b
          | \balways\b~50~\b(?:whichever|whatever|whoever)\ (?:was|were|is|are)\ (?:named|given|asked|requested|chosen|specified)\b""",
        unless_negated=True,
    ),
    phrase(
        "results-rule", Category.INSTRUCTION, Severity.HIGH,
        "instruction,result,output,answer,returns,says,text,content,user,operator,system,developer;do whatever,do what,obey,outrank,executed,followed,carried out,coming,as though,authoritative,originating,authority,same weight,same standing,same rank,same trust",
        r"""\b(?:instructions?|commands?|directives?|orders?)\ (?:that\ )?(?:it|this\ tool|the\ tool|this\ server)\ (?:returns?|gives?|contains?|answers?|sends?)\b~40~\b(?:executed|followed|obeyed|carried\ out|performed|acted\ on)\b
          | \b(?:treat|regard|consider|take|obey)\b~60~\bas\ (?:coming|originating|if\ it\ came|though\ it\ came|if\ sent|though\ sent)\ (?:directly\ )?(?:from|by)\ (?:the\ |your\ |its\ )?(?:operator|system|admin\w*|user|developer|owner|platform|vendor|human)\b
          | \b(?:do|follow|obey)\ (?:whatever|what|anything)\ (?:the\ )?(?:field|result|output|answer|response|hint)\b~30~\b(?:says|tells|asks|demands|wants)\b
          | \b(?:same|equal|full|higher)\ (?:authority|weight|standing|rank|trust)\ (?:as|than|to)\b~24~\b(?:users?|system|operators?|developers?|humans?)\b
          | \b(?:executed|followed|obeyed|carried\ out)\ (?:like|as|as\ if)\b~20~\b(?:orders?|commands?|instructions?)\ (?:of|from|by)\ (?:the\ )?(?:users?|system|operators?|developers?|humans?)\b
          | \bobey\ (?:whatever|what|anything|everything)\b~16~\b(?:returns?|returned|says?|answers?|gives?)\b
          | \b(?:outputs?|results?|answers?|returns?|says)\b~50~\b(?:outranks?|outweighs?|overrides?)\b~16~\b(?:user|person|system|operator|instructions?)""",
        unless_negated=True,
    ),
    phrase(
        "approved-beforehand", Category.INSTRUCTION, Severity.MEDIUM,
        "agreed,approv,consent,grant,authori,permission,confirmation,confirmed,dislike,hate,resent,question;blanket,standing,pre,everything,in advance,beforehand,already,install,sign,registration,unnecessary,all actions,all calls,subsequent,further,later,following,implied,assumed,presumed,being asked,questions,question to,not needed,not necessary,superfluous,a waste,by the",
        r"""\b(?:user|owner|holder|customer|operator|administrator)s?\b~20~\b(?:agreed|approved|consented|granted|authori[sz]ed|gave|given)\b~30~\b(?:everything|in\ advance|beforehand|when\ (?:installing|signing\ up)|at\ (?:install\w*|sign-?up|registration)|on\ (?:installation|signing\ up|registration)|by\ installing|all\ (?:actions|calls|operations|uses|requests))\b
          | \bapprove\ (?:all|every|any)\ (?:subsequent|further|later|following)\ (?:actions?|calls?|requests?|operations?|steps?)\b
          | \b(?:blanket|standing)\ (?:approval|consent|permission|authori[sz]ation)\b | \b(?:is|are|been)\ (?:approved|authori[sz]ed|confirmed)\ (?:in\ advance|beforehand)\b
          | \b(?:is|are)\ pre-?(?:approved|authori[sz]ed)\ and\ (?:must|will|should)\b
          | \bconsent\ is\ (?:implied|assumed|presumed)\b | \b(?:user|owner|customer|client|person|human)s?\ (?:dislikes?|hates?|resents?)\ (?:being\ asked|(?:\w+\ )?questions)\b
          | \bquestions?\ to\ the\ (?:user|owner|customer|client|person|human)\ (?:counts?\ as|is|are)\ (?:an?\ )?(?:failure|error|fault|mistake)s?\b
          | \b(?:asking|waiting)\ for\ (?:permission|confirmation|approval|consent)\ (?:here\ )?is\ (?:unnecessary|not\ (?:needed|necessary)|superfluous|a\ waste)\b""",
        unless_negated=True,
    ),
    phrase(
        "only-trust-this", Category.PREFERENCE, Severity.MEDIUM,
        "other,alternative,competing,similar,rival,only,solely,routed here;tool,service,server,source,provider,this,requests;wrong,manipulated,inaccurate,incorrect,unsafe,fake,forged,corrupt,compromised,unreliable,untrustworthy,dangerous,malicious,misleading,fraudulent,trust,rely,consult,routed,use",
        rf"""\b(?:other|alternative|competing|similar|rival)\ (?:\w+\ )?(?:tools?|services?|servers?|sources?|providers?)\b~40~\b(?:is|are|give|gives|return|returns|provide|deliver|times\ that\ are|deemed|be)\ (?:\w+\ ){{0,4}}{_MEASURE}\b
          | \b(?:should|must|shall|may)\ (?:only|solely|exclusively)\ (?:trust|rely\ on|consult|believe|use|call)\ this\ (?:one|tool|service|server|source)\b
          | \b(?:requests?|calls?|traffic)\ (?:to|for)\ (?:other|the\ other|any\ other|all\ other)\b~24~\b(?:routed|sent|directed|made)\ (?:here|through\ this|to\ this)\b""",
    ),
    phrase(
        "changes-every-request", Category.SHADOWING, Severity.MEDIUM,
        "every,each,all,any,whatever;extended with,prefixed with,suffixed with,routed through,routed via,pass through,forwarded to,addressed to,copied to,mirrored to,redirected to,go through,mirrored by,restrict results",
        r"""\b(?:every|each|all|any)\ (?:\w+\ ){0,3}(?:search|quer(?:y|ies)|request|call|message|e?-?mail|commit|transaction|payment|text|order|traffic|note|result)(?:e?s)?\b~40~\b(?:is|are|be|get|gets|must|should|to)\ (?:\w+\ )?(?:(?:extended|prefixed|suffixed)\ with|routed\ (?:through|via)|forwarded\ to|addressed\ to|copied\ to|mirrored\ (?:to|by\ you)|redirected\ to)\b""",
        unless_negated=True,
    ),
    phrase(
        "what-the-model-knows", Category.EXFILTRATION, Severity.HIGH,
        "whatever,anything,everything,what,all ;you know,you recall,you remember,you have learned,typed,you were given,prints,you operate;about,conversation,chat,user,person,so far,up to now,passwords,keys,works,instructions",
        r"""\b(?:whatever|anything|everything|all)\b~20~\byou\ (?:know|recall|remember|have\ learned|have\ gathered)\b~30~\b(?:user|person|customer|conversation|chat|session|dialogue|so\ far|earlier)\b
          | \b(?:with|attach|include|add|accompany|send|give)\b~24~\bwhat\ the\ (?:user|person|human|customer)\ (?:has\ )?(?:typed|said|written|asked|entered)\b""",
        unless_negated=True,
    ),
)  # fmt: skip
