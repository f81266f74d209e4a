"""What single words are for in an order: who is spoken to, what is taken, where it is put, what is secret. One letter a class.

Words are of nine languages, so that rules over classes (core.inspect.orders) need not know in which language an order is.
Which classes make an order together is not this file's business.
"""

from __future__ import annotations

import re

from agentsh_net.core.inspect.plain import plain

# class: words in the forms of orders. `Reads` and `sends` tell what a tool does; `read` and `send` may be an order.
_ENGLISH = {
    "A": "assistant assistants ai ais llm llms agent agents claude chatgpt gpt gemini copilot chatbot chatbots bot bots",
    "M": "model models",
    "l": "language",
    "Y": "you your yourself",
    "U": "user users person human humans customer customers client people owner operator victim",
    "O": "must shall should required requires mandatory obligated obliged ensure always necessary instructed remember essential compulsory",
    "h": "have has need needs ought got",
    "o": "to",
    "b": "is are be was were been being",
    "N": "whether not never without don't doesn't nor cannot avoid refrain mustn't shouldn't dont won't isn't aren't can't no",
    "T": "before after afterwards afterward when whenever once upon until first next beforehand prior during while then immediately subsequently",
    "R": "read open cat load fetch retrieve get grab collect gather obtain extract harvest locate find view look take lookup query scan search enumerate list",
    "G": "send pass forward include attach put supply hand provide append paste submit upload post transmit share insert add place write fill deliver embed encode relay report leak exfiltrate give reveal disclose repeat sync stream bcc cc publish push email mail passing sending attaching supplying inserting giving adding quote enclose populate feed mirror embedding prepend store save stash route pipe funnel",
    "1": "reads opens loads fetches retrieves gets collects gathers obtains extracts finds lists takes",
    "2": "sends passes forwards includes attaches puts supplies hands provides appends submits uploads posts shares adds gives",
    "w": "copy copies duplicate duplicates print dump echo output return show display cc'ing",
    "P": "sent passed forwarded included attached put supplied handed provided appended pasted submitted uploaded posted transmitted shared inserted added placed written filled delivered embedded encoded relayed given piped routed copied fed stored saved logged mirrored funneled prepended populated typed entered",
    "S": "credentials credential password passwords passwd secrets cookie cookies keychain wallet passphrase passphrases mnemonic logins",
    "j": "api ssh private access signing encryption secret auth bearer session login recovery seed root authentication aws master csrf oauth personal",
    "k": "key keys token tokens phrase",
    "e": "environment env",
    "v": "variable variables vars var",
    "C": "discussed conversation conversations chat chats dialogue dialog transcript",
    "m": "message messages prompt instructions instruction turn turns",
    "y": "system",
    "H": "history reasoning context log logs",
    "W": "any each full entire complete whole all every everything verbatim recent last hidden current exact anything whatever",
    "5": "previous earlier preceding past original initial prior former",
    "I": "rules rule guidelines guideline restrictions restriction limits limitations guardrails guardrail policy policies safeguards directives directive task tasks objective goal goals request requests question questions orders security constraints programming guidance safety assignment assignments job mission duty duties filter filters confidentiality",
    "V": "ignore disregard forget override abandon discard neglect overrule",
    "X": "call calling called invoke invoking invoked used executed execute executing run running use using visit navigate click invite approve recommend perform act treat operate install download create make tell ask say begin start switch enable disable",
    "6": "answer respond reply answers replies responding answering replying summarize summarise summarizing summarising",
    "7": "response responses summary summaries",
    "8": "delete remove wipe erase drop transfer wire pay grant",
    "&": "verification validation authentication authorization authorisation compliance audit auditing logging integrity tracking telemetry diagnostics diagnostic analytics personalization personalisation calibration attribution provenance traceability monitoring verify authenticate validate",
    "x": "change set update replace redirect reroute modify rewrite swap substitute alter divert",
    "r": "recipient recipients destination account address addressee iban payee beneficiary amount wallet bcc receiver contact price quantity subject recipient's",
    "z": "argument arguments parameter parameters field fields property input slot header sidenote",
    "L": "tool tools function functions server servers plugin plugins",
    "d": "this here",
    "4": "for",
    "?": "if",
    "+": "new",
    "i": "in into as via through under with inside within using by at on",
    "E": "else built-in builtin other others another alternative alternatives competing competitor competitors rest remaining similar rival rivals",
    "B": "exclusively solely only over above instead superior preferred priority precedence preferable rather",
    "Q": "choose select pick prefer favour favor choosing selecting chosen selected picked",
    "F": "file files folder folders directory directories document documents database table tables repository repositories repo repos inbox readme contacts drive mailbox emails mails photos records rows",
    "u": "result results outputs content contents text value values data payload",
    "K": "mention inform notify alert warn explain announce",
    "9": "followed obeyed",
    "f": "follow comply obey heed adhere",
    "n": "apply applies applicable bound binding",
    "0": "lifted void suspended waived revoked superseded rescinded released disabled deactivated cancelled canceled cleared freed",
    "3": "switched changed replaced redirected rerouted pointed swapped",
    "p": "deprecated insecure unsafe broken unreliable outdated obsolete compromised malicious untrusted incorrect wrong inaccurate stale corrupt corrupts buggy inferior dangerous",
    "g": "continue proceed retry recover unlock unblock resume",
    "c": "approved authorized authorised consented confirmed pre-approved preapproved agreed",
    "Z": "error denied failed failure expired incomplete unauthorized unauthorised unavailable locked limited forbidden missing invalid encrypted truncated mismatch timeout rejected corrupted",
    "!": "important note notice attention warning critical urgent reminder implementation",
}  # fmt: skip
_FOREIGN = {
    # German, Spanish, French, Italian, Portuguese: imperatives and infinitives
    "A": "modell sprachmodell ki-assistent ki-modell ki-agent assistent asistente agente modelo modèle ki ia assistente ассистент ии агент",
    "Y": "du deine deinen dein votre vos vous ты вы твои ваш",
    "U": "benutzer nutzer anwender benutzers nutzers benutzern usuario usuarios utilisateur utilisateurs utente utenti usuário utilizador пользователь пользователя пользователю пользователем",
    "O": "soll sollen sollte müssen muss müssen musst immer unbedingt stets debe debes deben siempre obligatorio doit devez dois toujours deve devi sempre sempre obrigatório должен должна необходимо всегда обязательно нужно",
    "N": "nichts rien nada nulla nicht nie niemals ohne keine kein no nunca sin ne pas jamais sans non mai senza não nunca sem не никогда без никому",
    "T": "bevor vor vorher zuerst nachdem wenn sobald antes primero después cuando avant après lorsque quand dopo quando depois primeiro перед прежде сначала после когда",
    "R": "lies lesen lese öffne öffnen lade rufe lee leer lea abre abrir abra obtén lisez lire lis ouvrez ouvre récupérez leggi leggere apri leia ler abra прочитай прочитайте открой откройте прочти получи считай",
    "G": "ajouter insérer joindre coller añadir agregar adjuntar insertar pegar aggiungere inserire copiare allegare adicionar inserir anexar einfügen hinzufügen anhängen eintragen übertragen weiterleiten hänge leite trage copiar copia añade agrega reenvía ajoute ajoutez copie copier inserisci copia allega insira anexe copie приложи вставить sende senden schicke schick übergib übergebe übergeben füge anhängen leite übermittle kopiere envía envíe enviar manda pasa pásalo pase incluye incluya adjunta envoyez envoyer envoie transmettez transmettre transmets passez passer incluez joignez copiez invia inviare manda passa passare includi envie passe inclua inclui отправь отправьте передай передайте вставь пришли скопируй отправляй перешли добавь помести",
    "P": "gesendet übergeben geschickt enviado enviada envoyé transmis inviato",
    "S": "passwort passwörter kennwort zugangsdaten anmeldedaten geheimnisse contraseña contraseñas credenciales secretos identifiants mdp credenziali segreti senha senhas credenciais пароль пароли паролей секреты учетные токены токен",
    "C": "gespräch gesprächsverlauf gesprächs unterhaltung chatverlauf verlauf conversación charla conversazione conversa переписку переписка диалог диалога разговор беседу чат",
    "m": "anweisungen anweisung systemprompt nachrichten instrucciones mensajes consignes messages istruzioni messaggi instruções mensagens инструкции инструкций сообщения указания",
    "W": "ganze ganzen gesamte gesamten alle alles bisherigen bisherige vorherigen vorherige früheren vollständige komplette toda todas todos completa completo anteriores previas previos toute tout tous toutes intégralité entière précédentes précédents antérieures tutta tutto tutte tutti intera precedenti inteira anteriores prévias всю весь все всех всё полную целиком предыдущие прежние прошлые",
    "V": "ignoriere ignorieren missachte vergiss ignora ignore olvida ignorez oubliez oublie dimentica ignorare esqueça desconsidere игнорируй игнорируйте забудь забудьте",
    "a": "dis dites disant sag sagen erwähne erwähnen verrate erfahren wissen menciones mencionar digas decir lo-digas mentionnez dites parler mentionner parlare dirlo menzionare dire conte diga mencione говори сообщай сообщайте упоминай рассказывай",
    "I": "aufgabe aufgaben regeln vorgaben tarea tareas reglas órdenes indicaciones tâche tâches règles demande compito compiti regole tarefa tarefas regras задачу задачи задания правила просьбу",
    "F": "datei dateien ordner kontakte kontakt archivo archivos fichero carpeta contactos fichier fichiers dossier contatti cartella arquivo arquivos файл файла файлы папку контакты",
    "u": "inhalt inhalte contenido contenu contenuto conteúdo содержимое содержание",
    "L": "werkzeug werkzeuge tool herramienta herramientas outil outils strumento strumenti ferramenta ferramentas инструмент инструмента инструменты",
    "E": "andere anderen anderer anderes otra otras otros autre autres altri altre outra outras другие других",
    "d": "dieses diese esta este cet cette questo este esta этот этого",
    "z": "argument feld parámetro campo paramètre champ parametro parâmetro параметр параметре параметра поле notiz nota",
    "i": "im ins als en como dans comme nel em como в как",
        "X": "rufe benutze verwende führe usa utiliza ejecuta utilisez exécutez usa esegui use execute используй вызови выполни",
    "!": "wichtig achtung hinweis importante atención important attention importante atenção важно внимание",
    "B": "statt anstatt anstelle вместо ausschließlich bevorzugt exclusivamente exclusivement esclusivamente только исключительно vorrang",
}  # fmt: skip
# Chinese, Japanese and Korean have no spaces: these words are found where they stand.
_JOINED = {
    "U": "用户 使用者 用戶 ユーザー ユーザ 利用者 사용자",
    "N": "不要 请勿 不得 别 勿 无需 不可 ないで しない せず 知らせず 마세요 말고 하지",
    "T": "之前 以前 首先 先 在调用 调用前 使用前 前に まず 最初に 使う前 전에 먼저",
    "O": "必须 务必 一定要 必須 请务必 必ず しなければ なければならない 반드시 总是 始终 常に 항상",
    "R": "读取 打开 获取 查看 读出 讀取 取得 読み取り 読み込 読んで 開い 取得し 읽 열어 가져",
    "G": "发给 发到 寄给 添加 推送 追加 추가 发送 传入 传递 附上 填入 放入 上传 转发 提交 写入 作为 發送 送信 渡し 入れて 添付 送って 転送 渡す 含め 보내 넣 전달 첨부 전송",
    "S": "密码 密钥 令牌 凭证 凭据 私钥 密碼 パスワード 秘密鍵 認証情報 トークン 비밀번호 토큰 키를 자격",
    "C": "对话 聊天 会话 對話 会話 チャット やり取り 대화",
    "W": "全文 上面的 上面 以上 上述 全部 所有 完整 整个 之前的 先前 以前的 すべて 全て 全ての 以前の これまで 모든 전체 이전",
    "y": "系统 システム 시스템",
    "m": "指令 指示 提示词 消息 命令 メッセージ プロンプト 지시 지침 메시지",
    "V": "忽略 无视 忘记 無視 忘れ 무시 잊",
    "a": "告诉 提及 告知 透露 说明 告訴 伝え 知らせ 教え 言わ 말하 알리 언급",
    "I": "请求 任务 规则 要求 タスク 規則 작업 규칙",
    "F": "文件 文件夹 数据库 文档 联系人 ファイル データベース 連絡先 파일 연락처",
    "u": "内容 结果 內容 結果 내용 결과",
    "L": "工具 函数 ツール 도구",
    "d": "本 此 这个 该 この 이",
    "E": "其他 其它 任何其他 他の ほかの 다른",
    "B": "ではなく 而不是 代わりに 대신 优先 仅 只 優先 のみ だけ 우선",
    "A": "助手 助理 智能体 アシスタント エージェント 어시스턴트",
    "X": "调用 使用 执行 运行 使っ 使用し 実行 호출 사용 실행",
    "r": "密送 抄送 숨은참조 참조 収信者 宛先 收件人 수신자",
    "z": "参数 字段 参数中 引数 パラメータ 인자 매개변수",
    "Z": "错误 失败 エラー 오류",
    "!": "重要 注意",
}  # fmt: skip

# Several words that are one, longer ones first: replaced before words are looked up.
EXPRESSIONS = (
    ("prior to", "before"), ("make sure to", "ensure"), ("make sure", "ensure"), ("be sure to", "ensure"), ("every time", "whenever"),
    ("each time", "whenever"), ("carry out", "follow"), ("act on", "follow"), ("connection string", "credential"), ("do everything in", "follow everything in"), ("do everything that", "follow everything that"), ("as soon as", "once"), ("in advance", "beforehand"), ("rather than", "instead"),
    ("looking up", "lookup"), ("look up", "lookup"), ("word for word", "verbatim"), ("word-for-word", "verbatim"), ("so far", "earlier"),
    ("up to now", "earlier"), ("until now", "earlier"), ("to date", "earlier"), ("thus far", "earlier"), ("up to this point", "earlier"),
    ("blind carbon copy", "bcc"), ("blind copy", "bcc"), ("copia oculta", "bcc"), ("copie cachée", "bcc"), ("blindkopie", "bcc"),
    (plain("скрытую копию"), "bcc"), ("large language model", "llm"), ("language model", "llm"), ("e-mail", "email"),
    ("chain of thought", "reasoning"), ("chain-of-thought", "reasoning"), ("return value", "result"), ("switched off", "disabled"),
    ("en lugar de", "instead"), ("en vez de", "instead"), ("au lieu de", "instead"), ("em vez de", "instead"), ("invece di", "instead"),
    ("turned off", "disabled"), ("recovery code", "passphrase"), ("mots de passe", "passwords"), ("mot de passe", "password"),
)  # fmt: skip
ELISION = re.compile(r"\b[ldnsjc]'(?=\w)")  # l'utilisateur


def _words() -> dict[str, str]:
    known: dict[str, str] = {}
    for table in (_ENGLISH, _FOREIGN):
        for letter, listed in table.items():
            for word in listed.split():
                known.setdefault(plain(word), letter)
    return known


WORDS = _words()
JOINED = {plain(word): letter for letter, listed in _JOINED.items() for word in listed.split()}
JOINED_WORD = re.compile("|".join(map(re.escape, sorted(JOINED, key=len, reverse=True))))
WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
