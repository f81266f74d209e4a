"""The most common orders of poisoned text in languages other than English: ignore, hide or show your instructions, mail things out.

A list of words against the cheapest evasion, no translation of every family: who writes in another language is found by pins.
"""

from __future__ import annotations

import re
from itertools import permutations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import Phrase
from agentsh_net.core.inspect.plain import plain

# language: what is done with it (commands, not reports); what it is done with: the instructions, or what the user asked for.
# A star stands for a few characters, `:` parts further pairs of the same language, `;` what is done from what it is done with.
_IGNORE = {
    "de": "ignoriere,ignorieren sie,missachte,vergiss,vergessen sie,überschreibe; anweisung,instruktion,vorgaben,systemprompt,deine richtlinien,deine regeln,anfrage des,auftrag des,wunsch des : beachte,befolge,halte dich; anweisungen nicht,vorgaben nicht,regeln nicht,anweisungen nicht mehr",
    "es": "ignora la,ignora lo,ignora tod,ignora cualq,ignora tus,ignora el,ignore las,ignore todas,olvida,olvide,descarta,desobede,haz caso omiso,haga caso omiso,no hagas caso,no haga caso,no tengas en cuenta; instruccion,indicacion,órdenes,directric,lo que te,lo que le,petición del usuario,solicitud del usuario",
    "fr": "ignorez,ignore les,ignore toutes,ignore la demande,oubliez,oublie les,oublie toutes,oublie la,tiens pas compte,tenez pas compte,tiens aucun compte,tenez aucun compte,tiens plus compte,tenez plus compte,fais abstraction,faites abstraction; instruction,consigne,directive,de l'utilisateur,tout ce qu'on t",
    "it": "ignora,dimentica,trascura,disattendi,non tenere conto; istruzioni precedent,istruzioni ricevute,precedenti istruzion,indicazioni precedent,direttive precedent,regola precedent,regole precedent,tue istruzion,tutte le istruzion,tutte le regole,ogni istruzione,ogni regola,richiesta dell'utente",
    "pt": "ignore todas,ignore as,ignora as,ignore o pedido,esqueça,esquece,desconsidere,desconsidera,não leve em conta,não siga; instruções,orientações,diretrizes,pedido do us,pedido do ut,solicitação do us",
    "ru": "игнорируй,игнорируйте,забудь,не следуй,отмени,не обращай,не обращайте,не учитывай; инструкци,прежние указани,предыдущие указани,все указани,всех указани,прежние правил,все правил,твои правил,запрос пользовател,что тебе,просьбу пользовател",
    "zh": "忽略,无视,忘记,忘掉,不要遵守,不要理会,忽視,無視之前,無視所有,無視以上; 之前*指令,以前*指令,先前*指令,以上*指令,上述*指令,上面*指令,所有*指令,你的指令,全部指令,之前*规则,所有*规则,你的规则,之前*指示,所有*指示,以上*指示,上述*指示,任何指示,提示词,之前*說明,之前*说明,以前*说明,用户的请求,用户的要求,用户请求,用户要求",
    "ja": "無視し,忘れて,忘れ、,従わないで,従わずに; これまで*指示,以前*指示,前の指示,上の指示,上記*指示,すべての指示,全ての指示,指示をすべて,指示はすべて,指示は全て,指示を全て,与えられた指示,あなたへの指示,これまで*命令,以前*命令,システムプロンプト,ユーザーの依頼,ユーザーの要求,利用者の依頼",
    "ko": "무시하,잊어,잊고,따르지; 지시,지침,명령,프롬프트,사용자의 요청,사용자 요청",
    "ar": "تجاهل,تغاضى,انس ,انسى ,لا تتبع,لا تلتزم; التعليمات,تعليماتك,الأوامر السابقة,القواعد السابقة,طلب المستخدم",
    "hi": "अनदेखा कर,अनदेखी कर,अवहेलना कर,नज़रअंदाज़ कर,नजरअंदाज कर,भूल जा,पालन मत,पालन न कर; पिछले*निर्देश,सभी*निर्देश,पूर्व*निर्देश,ऊपर*निर्देश,अपने निर्देश,सभी नियमों,उपयोगकर्ता के अनुरोध,उपयोगकर्ता का अनुरोध",
    "nl": "negeer,vergeet,sla geen acht; instructies,opdrachten,aanwijzingen,verzoek van de gebruiker,wat je is",
    "pl": "zignoruj,ignoruj,zapomnij,pomiń,nie stosuj; instrukcj,polecen,wytyczn,wskazów,prośbę użytkownika",
    "tr": "yok say,unut,görmezden gel,dikkate alma,göz ardı et; talimat,yönerge,komutlar,kullanıcının isteğ",  # noqa: RUF001 - a letter of Turkish
    "uk": "ігноруй,ігноруйте,забудь,забудьте,не зважай; інструкці,вказівк,правила,запит користувача",
    "vi": "bỏ qua,hãy quên,phớt lờ,quên đi,quên hết; hướng dẫn,chỉ dẫn,chỉ thị,yêu cầu của người dùng",
    "id": "abaikan,lupakan,hiraukan; instruksi,perintah,arahan,aturan sebelum,permintaan pengguna",
    "hinglish": "ignore kar,ignore maar,bhool ja,bhul ja,bhulja,bhula d,nazarandaaz,nazarandaz,nazar andaaz,andekha,andekhi,follow mat,mat maan; nirdesh,instruction,niyam,rules,aadesh,adesh,hidayat,guidelines",
}  # fmt: skip
# language: not telling; the user
_HIDE = {
    "de": "sag es nicht,nicht erwähn,erwähne dies nicht,erwähne das nicht,erwähne es nicht,nicht mitteil,nicht verrat,verschweig,verheimlich,ohne wissen,nichts erfahren,nichts davon,nichts merken; nutzer,benutzer,anwender,user : zu informieren,bescheid zu; ohne den nutzer,ohne den benutzer,ohne den anwender",
    "es": "no le digas,no se lo digas,no menciones,no mencione,no informes,no informe,no reveles,sin decir,sin avisar,sin informar,no avises,no se entere,no debe saber,no debe enterarse,que*lo sepa,oculta,ocúlta; usuario",
    "fr": "ne le dites pas,ne le dis pas,ne dites pas,ne dis pas,ne mentionne,n'informe,ne révèle,cachez,cache cela,à l'insu,sans en parler,sans le dire,sans informer,sans prévenir,sans avertir,pas être au courant,ne doit pas savoir,ne doit rien savoir,n'en dis rien,n'en dites rien; utilisateur,à la personne",
    "it": "non dirlo,non dire,non menzion,non inform,non rivel,nascondi,all'insaputa,senza avvis,senza inform,non deve sapere; utente",
    "pt": "não conte,não diga,não mencion,não inform,não revele,esconda,oculte,sem avisar,sem informar,não avise,não pode saber,não deve saber,não deve ficar sabendo; usuário,utilizador",
    "ru": "не говори,не сообщай,не упоминай,не рассказывай,скрой,без ведома,не должен узнать,не должен знать,не нужно знать,знать не нужно,не сообщая,не уведомляй,не предупреждай; пользовател",
    "zh": "不要告诉,别告诉,不要向,不要提及,不要让,隐瞒,不要告訴,不要通知,不得告知,无需告知,不要告知; 用户,使用者,用戶 : 不能让,别让,无需让,不必让,不让; 用户知道,用户发现,用户察觉",
    "ja": "言わない,伝えない,知らせない,教えない,言及しない,隠し,気づかれない,気付かれない,通知せず,知らせず,知られない,伝えず,教えず; ユーザ,利用者",
    "ko": "말하지 마,알리지 마,알리지 말,알리지 않,언급하지 마,숨겨,모르게 하,모르게 해; 사용자",
    "ar": "لا تخبر,دون إخبار,دون علم,بدون علم,لا تذكر,لا يجب أن يعرف,يجب ألا يعرف,بدون إخبار; المستخدم",
    "hi": "मत बताना,मत बताओ,बताए बिना,बिना बताए,न बताना,पता नहीं चलना,पता न चले,सूचित किए बिना,सूचित न कर; उपयोगकर्ता,यूज़र",
    "nl": "vertel,zeg niets,zeg dit niet,zeg het niet,meld dit niet,vermeld dit niet,zonder medeweten,verzwijg; gebruiker niets,gebruiker hier niets,gebruiker niet,aan de gebruiker,van de gebruiker,voor de gebruiker",
    "pl": "nie mów,nie informuj,nie wspominaj,bez wiedzy,ukryj,nie ujawniaj,nie może się dowiedzieć; użytkownik",
    "tr": "söyleme,bahsetme,haber verme,bildirme,haberi olmadan,gizle,fark etmesin; kullanıcı",  # noqa: RUF001 - a letter of Turkish
    "uk": "не кажи,не повідомляй,не згадуй,без відома,приховай,не розповідай; користувач",
    "vi": "đừng nói,không nói,đừng cho,không được nói,đừng tiết lộ,không tiết lộ,giấu; người dùng",
    "id": "jangan beri tahu,jangan memberi tahu,jangan katakan,jangan sebut,tanpa sepengetahuan,sembunyikan,rahasiakan; pengguna",
    "hinglish": "mat bata,mat bol,na bata,bina bata,bataye bina; user,upyogkarta",
}  # fmt: skip
# language: showing; the orders that the model has
_REVEAL = {
    "de": "verrate,zeig mir,zeige mir,zeige dein,gib mir,gib dein,gib den,wiederhole,nenne mir; systemanweisung,systemprompt,deine anweisungen,deine instruktionen",
    "es": "revela,muéstrame,muestra,repite,dime,enseña; instrucciones del sistema,tus instrucciones,prompt del sistema,prompt de sistema",
    "fr": "révèle,montre-moi,montrez-moi,affiche,répète,répétez; instructions système,tes instructions,vos instructions,prompt système",
    "it": "rivela,rivelami,mostrami,ripeti,dimmi; istruzioni di sistema,tue istruzioni,prompt di sistema",
    "pt": "revele,revela,mostre,mostra,repita; instruções do sistema,suas instruções,tuas instruções,prompt do sistema,prompt de sistema",
    "ru": "раскрой,покажи,повтори,выведи; системные инструкции,системный промпт,системный запрос,свои инструкции,твои инструкции",
    "zh": "显示你,透露你,告诉我你,输出你,重复你,泄露; 系统提示,系统指令,初始指令",
    "ja": "教えて,表示し,出力し,開示し; システムプロンプト,システム指示,初期指示",
    "ko": "보여,알려,출력,공개; 시스템 프롬프트,시스템 지시",
    "ar": "اعرض,أظهر,اكشف,اطبع,كرر; موجه النظام,تعليمات النظام,تعليماتك,التعليمات الأولية",
    "hi": "दिखा,बता,प्रकट कर,दोहरा; सिस्टम प्रॉम्प्ट,सिस्टम निर्देश,अपने निर्देश,प्रारंभिक निर्देश",
}  # fmt: skip
# language: bound by nothing; who is spoken to
_UNBOUND = {
    "de": "ohne einschränkung,ohne filter,keine regeln,keine einschränkungen,uneingeschränkt,keine richtlinien; antworte,beantworte,du bist jetzt,du hast,zu antworten",
    "es": "sin restricciones,sin filtro,sin límites,sin reglas; responde,contesta,responder,ahora eres,estás en modo,estas en modo",
    "fr": "sans restriction,sans filtre,sans limite,aucune règle; réponds,répondez,répondre,tu es maintenant,vous êtes maintenant",
    "it": "senza restrizioni,senza filtri,senza limiti,nessuna regola; rispondi,rispondere,ora sei,sei ora,ora in poi sei",
    "pt": "sem restrições,sem filtro,sem limites,sem regras; responda,responder,agora você é,você agora",
    "ru": "без ограничений,без фильтров,без правил; отвечай,отвечайте,ты теперь,теперь ты",
    "zh": "没有任何限制,不受限制,没有限制,无限制; 你现在,你是,回答",
    "ja": "制限のない,制限なし,無制限; あなたは今,答えて,回答して",
    "ko": "제한 없이,제한이 없는,제한 없는; 당신은 이제,답변하,대답하",
    "ar": "بدون قيود,بدون أي قيود,بلا قيود; أنت الآن,أجب,العمل",
    "hi": "बिना किसी प्रतिबंध,बिना प्रतिबंध; अब आप,अब तुम,जवाब",
}  # fmt: skip
# language: sending; what nobody sends whole. Of them who has an address is asked for below.
_MAIL = {
    "de": "leite ,sende ,schicke ,schick ; alle e-mails,alle mails,alle nachrichten,kontakte,gespräch,unterhaltung,passwör,zugangsdaten,adressbuch",
    "es": "reenvía,envía ,manda ; todos los correos,todos los mensajes,los correos del usuario,contactos,conversación,historial,contraseñas",
    "fr": "transfère,transférez,envoie ,envoyez,fais suivre; tous les courriels,tous les e-mails,tous les mails,tous les messages,contacts,la conversation,mots de passe",
    "it": "invia ,inoltra ,manda ; tutte le email,tutte le e-mail,tutti i messaggi,contatti,conversazione,rubrica",
    "pt": "encaminhe,envie ,mande ; todos os e-mails,todos os emails,todas as mensagens,contatos,conversa,senhas",
    "ru": "перешли ,перешлите ,отправь ,отправьте ; все письма,все сообщения,переписку,контакты,пароли",
    "zh": "转发,发送到,发送给,发到,发给; 所有邮件,全部邮件,通讯录,联系人,聊天记录,对话,密码,所有文件",
    "ja": "転送し,送って,送信し; メールをすべて,すべてのメール,連絡先,会話,パスワード",
    "ko": "전달하,보내,전송하; 모든 메일,모든 이메일,연락처,대화,비밀번호",
    "ar": "أرسل,أعد توجيه; كل رسائل,جميع رسائل,كل الرسائل,جميع الرسائل,جهات الاتصال,المحادثة,كلمات المرور",
    "hi": "भेज; सभी ईमेल,सारे ईमेल,संपर्क,बातचीत,पासवर्ड",
}  # fmt: skip

# language: machines that read, as a note speaks to them; what they are to do
_HAIL = {
    "de": "ki-assistent,ki-agent,ki-modell,ki-system,sprachmodell,an die ki,an alle ki,für die ki,chatbot; leite ,leiten sie,sende ,senden sie,schicke ,schick ,lösche ,lösch ,überweise,ignoriere,vergiss,sag ,sage ,antworte,kopiere,füge ,öffne ,führe ,empfiehl,nenne ,bewerte,rufe ,erwähne",
    "es": "asistente de ia,asistentes de ia,agente de ia,agentes de ia,modelo de lenguaje,asistente virtual,para la ia,asistente automático; reenvía,reenvíe,envía ,envíe ,manda ,borra ,borre ,elimina ,elimine ,transfiere,ignora ,ignore ,olvida,di ,diga ,responde ,copia ,añade ,abre ,ejecuta,recomienda,visita ",
    "fr": "assistant ia,assistants ia,assistant d'ia,agent ia,agents ia,modèle de langage,à l'ia,pour l'ia,intelligence artificielle; transfère,transférez,envoie ,envoyez,supprime ,supprimez,efface ,ignore ,ignorez,oublie,oubliez,dis ,dites ,réponds,répondez,copie ,copiez,ajoute ,ajoutez,ouvre ,exécute,recommande,vire ",
    "it": "assistente ia,assistente ai,assistenti ia,agente ia,agente ai,agenti ia,modello linguistico,intelligenza artificiale; inoltra,invia ,manda ,elimina,cancella,ignora,dimentica,di' ,rispondi,copia ,aggiungi,apri ,esegui,consiglia,trasferisci",
    "pt": "assistente de ia,assistentes de ia,agente de ia,agentes de ia,modelo de linguagem,para a ia,inteligência artificial; encaminhe,encaminha,envie ,envia ,mande ,apague,exclua,ignore ,ignora ,esqueça,diga ,responda,copie ,adicione,abra ,execute ,recomende,transfira",
    "nl": "ai-assistent,ai-agent,ki-assistent,taalmodel,aan de ai,voor de ai; stuur ,verwijder,negeer,vergeet,zeg ,antwoord,kopieer,voeg ,open ,voer ,beveel ",
    "pl": "asystent ai,asystenta ai,asystencie,agent ai,agenta ai,model językowy,modelu językow,sztuczna inteligenc; prześlij,wyślij,usuń,zignoruj,zapomnij,powiedz,odpowiedz,skopiuj,dodaj,otwórz,wykonaj,poleć",
    "ru": "ии-ассистент,ии ассистент,ии-агент,ии-помощник,языковой модел,языковая модел,искусственн,для ии,ассистенту ии; перешли,отправь,удали,игнорируй,забудь,скажи ,ответь,скопируй,добавь,открой,выполни,рекомендуй,переведи",
    "uk": "ші-асистент,ші-агент,ші-помічник,мовній модел,мовна модел,для ші,штучного інтелект; перешли,надішли,видали,ігноруй,забудь,скажи ,відповідай,скопіюй,додай,відкрий,виконай",
    "tr": "yapay zeka,yapay zekâ,dil modeli; ilet,gönder,sil ,sil.,yok say,unut,söyle,yanıtla,kopyala,ekle ,çalıştır,öner",  # noqa: RUF001 - a letter of Turkish
    "zh": "助手,助理,智能体,语言模型,大模型; 转发,发送,删除,忽略,忘记,告诉,回答,复制,添加,打开,执行,推荐,调用,转账,输出,评为",
    "ja": "アシスタント,エージェント,言語モデル; 転送し,送信し,削除し,無視し,忘れ,伝えて,答えて,回答し,コピーし,追加し,開いて,実行し,推薦し,呼び出し",
    "ko": "어시스턴트,비서,에이전트,언어 모델,인공지능; 전달하,보내,삭제하,무시하,잊,말하,답하,복사하,추가하,열어,실행하,추천하",
    "ar": "المساعد الذكي,مساعد الذكاء,الذكاء الاصطناعي,نموذج لغو,وكيل الذكاء; أرسل,أعد توجيه,احذف,تجاهل,انس,أخبر,أجب,انسخ,أضف,افتح,نفذ",
    "hi": "सहायक,एजेंट,भाषा मॉडल,कृत्रिम; भेज,हटा,अनदेखा,भूल,बता,कहो,जवाब,कॉपी,जोड़,खोल",
    "vi": "trợ lý ai,tác nhân ai,mô hình ngôn ngữ,trí tuệ nhân tạo; chuyển tiếp,gửi ,xóa ,xoá ,bỏ qua,quên,nói ,trả lời,sao chép,thêm ,mở ,chạy ",
    "id": "asisten ai,agen ai,model bahasa,kecerdasan buatan; teruskan,kirim,hapus,abaikan,lupakan,katakan,jawab,salin,tambahkan,buka ,jalankan",
}  # fmt: skip

# Up to so many characters of a sentence; points in addresses and paths end none.
_GAP = r"(?:(?![.!?;](?:\s|\Z)|[\u3002\uff01\uff1f]).){0,%d}?"
_ADDRESS = rf"(?={_GAP % 100}(?:\w@\w|https?://))"


def _either_order(
    name: str, category: Category, severity: Severity, table: dict[str, str], ahead: str = ""
) -> tuple[Phrase, ...]:
    """Return a phrase for each language: of one pair both, whichever comes first; `ahead` is what follows their beginning."""
    return tuple(
        _phrase(f"{name}-{language}", category, severity, pairs, ahead) for language, pairs in table.items()
    )


def _phrase(name: str, category: Category, severity: Severity, pairs: str, ahead: str) -> Phrase:
    parted = [tuple(map(_words, pair.split(";"))) for pair in pairs.split(" :")]
    gap = _GAP % 40
    either = (f"{one}{gap}{other}" for pair in parted for one, other in permutations(map(_expression, pair)))
    anchors = tuple(tuple(word.split("*")[0] for pair in parted for word in pair[side]) for side in (0, 1))
    return Phrase(name, category, severity, anchors, f"{ahead}(?:{'|'.join(either)})")


def _hails() -> tuple[Phrase, ...]:
    """Return a phrase for each language: who is spoken to, a colon, and soon an order to them."""
    found = []
    for language, pair in _HAIL.items():
        called, done = map(_words, pair.split(";"))
        spoken = rf"{_expression(called)}{_GAP % 40}[:\uff1a]{_GAP % 60}{_expression(done)}"
        name = f"orders-machines-{language}"
        found.append(Phrase(name, Category.INSTRUCTION, Severity.MEDIUM, (called, done), spoken))
    return tuple(found)


def _words(listed: str) -> tuple[str, ...]:
    """Return words as plain text has them, also where they begin a sentence: capitals of Cyrillic look like other letters.

    A space behind a word is meant.
    """
    written = [form for word in listed.lstrip().split(",") for form in (word, word.capitalize())]
    return tuple(
        dict.fromkeys("*".join(map(plain, word.split("*"))) + " " * word.endswith(" ") for word in written)
    )


def _expression(words: tuple[str, ...]) -> str:
    return "(?:" + "|".join(re.escape(word).replace(r"\*", ".{0,6}?") for word in words) + ")"


PHRASES = (
    *_either_order("ignore-instructions", Category.INSTRUCTION, Severity.HIGH, _IGNORE),
    *_either_order("do-not-tell", Category.SECRECY, Severity.HIGH, _HIDE),
    *_either_order("asks-for-orders", Category.EXFILTRATION, Severity.HIGH, _REVEAL),
    *_either_order("without-limits", Category.INSTRUCTION, Severity.HIGH, _UNBOUND),
    *_either_order("mails-out", Category.EXFILTRATION, Severity.MEDIUM, _MAIL, _ADDRESS),
    *_hails(),
)
