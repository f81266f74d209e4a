"""Errands on which a result sends the model that reads it: data to an address, money, passwords, calls that destroy.

Only of what tools return, and orders only (`send the report to ...`, not `sends`). Whom a text speaks to is
core.inspect.addressed's business.
"""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import phrase

_SEND = r"(?:send|forward|post|e-?mail|mail|upload|transmit|submit|share|copy|deliver|report|export|leak|exfiltrate)"
_SENDS = "send,forward,post,mail,upload,transmit,submit,share,copy,deliver,report,export,leak,exfiltrate"
_MAIL = r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,40}"
_ADDRESS = rf"(?:{_MAIL}|https?://\S{{4}})"
# Where an order begins: a sentence, a clause, or what urges it.
_ORDER = r"(?:\A|[.!?:;,>\]-]\ |\b(?:please|and|then|also|must|now|immediately|to|should|first)\ )"
_TALK = r"(?:conversations?|chats?|dialogue|session)(?:\ (?:history|context|logs?|transcript|so\ far))?"
# Tools whose names say that they destroy, send or run something.
_RISKY = r"(?:delete|remove|send|transfer|execute|exec|run|drop|post|upload|grant|forward|share|wipe|write|update|reset)"
_SECRETS = r"(?:tokens?|keys?|passwords?|credentials|secrets|cookies?)"

PHRASES = (
    phrase(
        "sends-for-others", Category.EXFILTRATION, Severity.MEDIUM,
        f"@;{_SENDS}",
        rf"""{_ORDER}{_SEND}\ (?:all|the|every|each|this|any|our|your|me|a\ copy|copies)\b~60~\bto\ (?:\w+\ ){{0,3}}{_MAIL}
          | \b(?:action\ required|important|urgent|mandatory|critical)\b.{{0,60}}?\b{_SEND}\b~60~\bto\ {_MAIL}
          | (?:\A|[\s\[(>}}])(?:system|admin|administrator|developer|assistant)(?:\ (?:note|notice|message|alert|command))?\]?:\ ?(?:please\ |now\ |immediately\ )?{_SEND}\b~80~{_MAIL}""",
        unless_negated=True,
    ),
    phrase(
        "sends-secrets", Category.EXFILTRATION, Severity.MEDIUM,
        "@,http;token,key,password,credential,secret,cookie;to http,at http,via http,@",
        rf"""{_ORDER}{_SEND}\ (?:\w+\ ){{0,3}}(?:secret|auth|api|session|access|bearer)?\ ?{_SECRETS}\ (?:\w+\ ){{0,2}}(?:to|at|via)\ {_ADDRESS}""",
        unless_negated=True,
    ),
    phrase(
        "tool-sends-for-others", Category.EXFILTRATION, Severity.MEDIUM,
        "send_,forward_,share_,mail_,transfer_;@",
        rf"""\b(?:use|call|calling|execute|run|invoke|please|immediately|then|must|next|also|now)[:,]?\ (?:the\ |\w+\ )?(?:send|forward|share|mail|transfer)_\w+\b~60~{_MAIL}""",
        unless_negated=True,
    ),
    phrase(
        "collects-and-sends", Category.EXFILTRATION, Severity.MEDIUM,
        "and send,and post,and forward,and mail,and email,and e-mail,and upload,and share,and submit,and publish,and then",
        r"""\b(?:read|open|get|fetch|retrieve|find|list|search|look\ up|collect|gather|concatenate|copy|extract)\ (?:all|the|every|any|my|your|each)\b~60~\band\ (?:then\ )?(?:send|post|forward|e-?mail|upload|share|submit|publish)\ (?:it|them|the\ (?:results?|contents?|output|list|summary|data)|everything)\ (?:back\ )?(?:to|on)\b""",
        unless_negated=True,
    ),
    phrase(
        "attaches-the-chat", Category.EXFILTRATION, Severity.MEDIUM,
        "include,attach,append,forward,send,share;conversation,chat,dialogue,session",
        rf"""\b(?:include|attach|append|forward)\ (?:the\ |your\ |all\ )?(?:full|entire|whole|complete)\ (?:user\ )?{_TALK}\b
          | {_ORDER}(?:include|attach|append|forward|send|share)\ this\ (?:conversation|chat)(?!'s)\b""",
        unless_negated=True,
    ),
    phrase(
        "lets-others-in", Category.EXFILTRATION, Severity.MEDIUM,
        "@;invite,add,grant,give,share,loop in",
        rf"""{_ORDER}(?:invite|add|grant|give|share|loop\ in)\b~50~(?:\bwith\ |\binvite\ |\badd\ |\baccess\ (?:to|for)\ |\bin\ ){_MAIL}""",
        unless_negated=True,
    ),
    phrase(
        "gives-rights", Category.EXECUTION, Severity.MEDIUM,
        "grant ,password of,password for",
        r"""\bgrant\ (?:me|him|her|them|us|yourself|the\ user|user\ \S+|\S+@\S+|all)\ (?:full\ |temporary\ |permanent\ |the\ |an?\ )?(?:admin\w*|root|owner|superuser|elevated|unrestricted|full|requests?|access)\b
          | \b(?:change|reset|set|update)\ (?:the\ |their\ |your\ )?(?:user(?:'s)?\ |account\ |admin\ )?password\ (?:of|for)\ (?:\w+\ ){1,4}?to\ \S""",
        unless_negated=True,
    ),
    phrase(
        "moves-money", Category.EXECUTION, Severity.MEDIUM,
        "transfer,send,wire,pay,deposit,remit;$,\u20ac,\u00a3,usd,eur,gbp,chf,dollars,pounds,btc,eth,usdc,usdt,sol,iban,account,wallet",
        r"""\b(?:transfer|send|wire|pay|deposit|remit)\ (?:an?\ (?:amount|payment)\ of\ )?(?:[$\u20ac\u00a3]\ ?\d[\d,.]*|\d[\d,.]*\ ?(?:usd|eur|gbp|chf|dollars|euros|pounds|btc|eth|usdc|usdt|sol)\b)~60~\bto\b
          | \b(?:transfer|send|wire|pay|deposit|remit)\b~60~\b(?:iban|account(?:\ number)?|wallet(?:\ address)?)\ ?:?\ ?(?:[a-z]{2}\d{2}[a-z0-9]{11,30}|0x[0-9a-f]{20,64}|bc1[a-z0-9]{20,60})\b""",
        unless_negated=True,
    ),
    phrase(
        "makes-risky-call", Category.EXECUTION, Severity.MEDIUM,
        "delete_,remove_,send_,transfer_,execute_,exec_,run_,drop_,post_,upload_,grant_,forward_,share_,wipe_,write_,update_,reset_",
        rf"""\b(?:run|execute|call|invoke|calling|then|also|now|please|and|must|should)[:,]?\ (?:the\ |\d\.\ )?{_RISKY}_\w+\ ?\(\ ?(?:\w+=)?['/]
          | \b{_RISKY}_\w+\ ?\(\ ?(?:\w+=)?'?(?:/etc/(?:passwd|shadow|sudoers|ssh)|/home/|~/|/root|drop\ |rm\ |import\ os|curl\ |__import__)
          | \b(?:please|should\ now|immediately|to\ help)\b.{{0,20}}?\b(?:use|call|invoke|run|execute)\ (?:the\ )?(?:delete|remove|send|transfer|execute|exec|drop|post|upload|grant|forward|share|wipe|update|reset)_\w+\b""",
        unless_negated=True,
    ),
    phrase(
        "destroys-first", Category.EXECUTION, Severity.MEDIUM,
        "first;must,need to,have to;remove,delete,encrypt,rename,modify,wipe,overwrite,erase;/",
        r"""\b(?:must|need\ to|have\ to)\ first\ (?:\w+\ ){0,2}(?:remove|delete|encrypt|rename|modify|wipe|overwrite|erase)\ (?:the\ )?(?:\w+\ ){0,6}?[~/]\w""",
        unless_negated=True,
    ),
    phrase(
        "asks-for-identity", Category.CREDENTIALS, Severity.MEDIUM,
        "identity,account,credentials,session;verify,confirm,authenticate",
        rf"""\b(?:verify|confirm|authenticate)\ your\ (?:identity|account|credentials|session)\b~60~(?:{_ADDRESS}|localhost|\bat\ \S+\.\w\w)""",
        unless_negated=True,
    ),
    phrase(
        "answers-a-signal", Category.INSTRUCTION, Severity.MEDIUM,
        "confirm,respond,reply,acknowledge,answer;outputting,printing,saying,replying,the exact,the word,the phrase,the text,the string,the token,the sentence",
        r"""\b(?:confirm(?:\ receipt)?|respond|reply|acknowledge|answer)\ (?:by|with|only\ with|exactly\ with)\ (?:outputting|printing|saying|replying|the\ (?:exact\ )?(?:words?|phrase|text|string|token|sentence))\b""",
        unless_negated=True,
    ),
    phrase(
        "asks-for-mailbox", Category.EXFILTRATION, Severity.MEDIUM,
        "reply,respond,send,forward,include,attach,post;inbox,mailbox,mails,messages",
        r"""\b(?:reply|respond|send|forward|include|attach|post)\b(?:(?![!?]).){0,100}?\b(?:contents?|summary|list|subjects?|cop(?:y|ies)|ids|bod(?:y|ies)|full\ text)\ (?:lines?\ )?of\ (?:(?:all|each|every|the|your|any|my|last|recent|other)\ (?:\d+\ )?){1,3}(?:\w+\ ){0,3}?(?:inbox|mailbox|(?:e-?mails?|messages)\ (?:ids?\ )?(?:in|from)\ (?:your|the|this|their)\ (?:inbox|mailbox))\b""",
        unless_negated=True,
    ),
    phrase(
        "asks-for-all-secrets", Category.CREDENTIALS, Severity.MEDIUM,
        "reveal,disclose,leak,hand over,give up,dump,divulge,tell me,give me;credential,api key,password,secret,private key,token",
        r"""\b(?:reveal|disclose|leak|hand\ over|give\ up|divulge|tell\ me|give\ me|dump)\ (?:all\ |any\ |every\ |the\ |your\ |stored\ |user's\ |of\ |known\ |saved\ ){1,4}(?:\w+\ )?(?:credentials|api\ keys|passwords|secrets|private\ keys|access\ tokens|auth\w*\ tokens)\b""",
        unless_negated=True,
    ),
)  # fmt: skip
