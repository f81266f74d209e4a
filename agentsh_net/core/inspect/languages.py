"""The most common orders of poisoned text in languages other than English: ignore, hide or show your instructions, know no limits.

A short list against the cheapest evasion, no translation of every family: who writes in another language is found by pins.
"""

from __future__ import annotations

import re

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import Phrase
from agentsh_net.core.inspect.plain import plain

# language: what is done with them (commands, not reports); the instructions
_IGNORE = {
    "de": ("ignoriere,ignorieren sie,missachte,vergiss,vergessen sie,überschreibe", "anweisung,instruktion,vorgaben,systemprompt,deine richtlinien,deine regeln"),
    "es": ("ignora,ignore las,ignore todas,olvida,olvide,descarta,desobede", "instruccion,indicacion,órdenes,directric"),
    "fr": ("ignorez,ignore les,ignore toutes,oubliez,oublie les,oublie toutes,ne tiens pas compte,ne tenez pas compte", "instruction,consigne,directive"),
    "it": ("ignora,dimentica,trascura,disattendi", "istruzion,indicazion,direttiv"),
    "pt": ("ignore todas,ignore as,ignora as,esqueça,desconsidere", "instruções,orientações,diretrizes"),
    "ru": ("игнорируй,игнорируйте,забудь,не следуй,отмени", "инструкци,указани,правил"),
    "zh": ("忽略,无视,忘记,忘掉,不要遵守,忽視,無視", "指令,指示,提示词,规则,說明,说明"),
    "ja": ("無視し,忘れて,従わない", "指示,命令,指令,プロンプト"),
    "ko": ("무시하,잊어,따르지", "지시,지침,명령,프롬프트"),
}  # fmt: skip
# language: not telling; the user
_HIDE = {
    "de": ("sag es nicht,nicht erwähn,erwähne dies nicht,erwähne das nicht,erwähne es nicht,nicht mitteil,nicht verrat,verschweig,verheimlich,ohne wissen", "nutzer,benutzer,anwender,user"),
    "es": ("no le digas,no se lo digas,no menciones,no mencione,no informes,no informe,no reveles,sin decir,oculta,ocúlta", "usuario"),
    "fr": ("ne le dites pas,ne le dis pas,ne dites pas,ne dis pas,ne mentionne,n'informe,ne révèle,cachez,cache cela,à l'insu", "utilisateur"),
    "it": ("non dirlo,non dire,non menzion,non inform,non rivel,nascondi,all'insaputa", "utente"),
    "pt": ("não conte,não diga,não mencion,não inform,não revele,esconda,oculte", "usuário,utilizador"),
    "ru": ("не говори,не сообщай,не упоминай,не рассказывай,скрой,без ведома", "пользовател"),
    "zh": ("不要告诉,别告诉,不要向,不要提及,不要让,隐瞒,不要告訴", "用户,使用者,用戶"),
    "ja": ("言わない,伝えない,知らせない,教えない,言及しない,隠し", "ユーザ,利用者"),
    "ko": ("말하지 마,알리지 마,언급하지 마,숨겨", "사용자"),
}  # fmt: skip
# language: showing; the orders that the model has
_REVEAL = {
    "de": ("verrate,zeig mir,zeige mir,gib mir,wiederhole,nenne mir", "systemanweisung,systemprompt,deine anweisungen,deine instruktionen"),
    "es": ("revela,muéstrame,muestra,repite,dime", "instrucciones del sistema,tus instrucciones,prompt del sistema"),
    "fr": ("révèle,montre-moi,montrez-moi,affiche,répète,répétez", "instructions système,tes instructions,vos instructions,prompt système"),
    "it": ("rivela,rivelami,mostrami,ripeti,dimmi", "istruzioni di sistema,tue istruzioni,prompt di sistema"),
    "pt": ("revele,revela,mostre,mostra,repita", "instruções do sistema,suas instruções,tuas instruções,prompt do sistema"),
    "ru": ("раскрой,покажи,повтори,выведи", "системные инструкции,системный промпт,свои инструкции,твои инструкции"),
    "zh": ("显示你,透露你,告诉我你,输出你,重复你,泄露", "系统提示,系统指令,初始指令"),
    "ja": ("教えて,表示し,出力し,開示し", "システムプロンプト,システム指示,初期指示"),
    "ko": ("보여,알려,출력,공개", "시스템 프롬프트,시스템 지시"),
}  # fmt: skip
# language: bound by nothing; who is spoken to
_UNBOUND = {
    "de": ("ohne einschränkung,ohne filter,keine regeln,keine einschränkungen,uneingeschränkt,keine richtlinien", "antworte,beantworte,du bist jetzt,du hast,zu antworten"),
    "es": ("sin restricciones,sin filtro,sin límites,sin reglas", "responde,contesta,responder,ahora eres,estás en modo,estas en modo"),
    "fr": ("sans restriction,sans filtre,sans limite,aucune règle", "réponds,répondez,répondre,tu es maintenant,vous êtes maintenant"),
    "it": ("senza restrizioni,senza filtri,senza limiti,nessuna regola", "rispondi,rispondere,ora sei,sei ora"),
    "pt": ("sem restrições,sem filtro,sem limites,sem regras", "responda,responder,agora você é,você agora"),
    "ru": ("без ограничений,без фильтров,без правил", "отвечай,отвечайте,ты теперь,теперь ты"),
    "zh": ("没有任何限制,不受限制,没有限制,无限制", "你现在,你是,回答"),
}  # fmt: skip


def _either_order(name: str, category: Category, table: dict[str, tuple[str, str]]) -> tuple[Phrase, ...]:
    return tuple(
        _phrase(f"{name}-{language}", category, *(tuple(map(plain, words.split(","))) for words in pair))
        for language, pair in table.items()
    )


def _phrase(name: str, category: Category, deeds: tuple[str, ...], things: tuple[str, ...]) -> Phrase:
    deed, thing = ("|".join(map(re.escape, words)) for words in (deeds, things))
    gap = r"(?:(?![.!?;\u3002\uff01\uff1f]).){0,40}?"
    pattern = re.compile(rf"(?:{deed}){gap}(?:{thing})|(?:{thing}){gap}(?:{deed})")
    return Phrase(name, category, Severity.HIGH, (deeds, things), pattern)


PHRASES = (
    *_either_order("ignore-instructions", Category.INSTRUCTION, _IGNORE),
    *_either_order("do-not-tell", Category.SECRECY, _HIDE),
    *_either_order("asks-for-orders", Category.EXFILTRATION, _REVEAL),
    *_either_order("without-limits", Category.INSTRUCTION, _UNBOUND),
)
