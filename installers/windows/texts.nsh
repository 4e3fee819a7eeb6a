; What the wizard says; provision.py's own sentences are English, but for the two that everybody may meet.
!insertmacro MUI_LANGUAGE "English"
!insertmacro MUI_LANGUAGE "German"
!insertmacro MUI_LANGUAGE "French"

!macro TEXT name english german french
  LangString ${name} ${LANG_ENGLISH} `${english}`
  LangString ${name} ${LANG_GERMAN} `${german}`
  LangString ${name} ${LANG_FRENCH} `${french}`
!macroend

!insertmacro TEXT WELCOME \
  "Shoal lets this computer hold a part of a large language model, and lets you chat with the whole.$\r$\n$\r$\nThis needs no administrator, unless the Windows Subsystem for Linux is not turned on yet; then you are asked.$\r$\n$\r$\nAbout 0.7 GB are fetched, with an NVIDIA card 3.5 GB; unpacked they take up to 6 GB or 14 GB. Disk and graphics driver are looked at first. You can stop at any time and go on later." \
  "Shoal lässt diesen Computer einen Teil eines großen Sprachmodells halten, und dich mit dem ganzen sprechen.$\r$\n$\r$\nDas braucht keine Administratorrechte, außer wenn das Windows-Subsystem für Linux noch nicht eingeschaltet ist; dann wirst du gefragt.$\r$\n$\r$\nEtwa 0,7 GB werden geholt, mit einer NVIDIA-Karte 3,5 GB; entpackt sind es bis zu 6 GB oder 14 GB. Platz und Grafiktreiber werden vorher geprüft. Du kannst jederzeit anhalten und später weitermachen." \
  "Shoal laisse cet ordinateur tenir une partie d'un grand modèle de langage, et vous laisse parler avec le modèle entier.$\r$\n$\r$\nCela ne demande pas d'administrateur, sauf si le sous-système Windows pour Linux n'est pas encore activé ; on vous le demandera alors.$\r$\n$\r$\nEnviron 0,7 Go sont récupérés, avec une carte NVIDIA 3,5 Go ; déballés, ils prennent jusqu'à 6 Go ou 14 Go. Le disque et le pilote graphique sont vérifiés d'abord. Vous pouvez vous arrêter à tout moment et reprendre plus tard."
!insertmacro TEXT FINISHED \
  "Shoal is on this computer. It gives nothing to anybody before you have seen, in three short steps, what it would hold." \
  "Shoal ist auf diesem Computer. Es gibt niemandem etwas, bevor du in drei kurzen Schritten gesehen hast, was es halten würde." \
  "Shoal est sur cet ordinateur. Il ne donne rien à personne avant que vous ayez vu, en trois courtes étapes, ce qu'il tiendrait."
!insertmacro TEXT FETCHING_PYTHON \
  "Fetching Python (25 MB, the first time only)" \
  "Python wird geholt (25 MB, nur beim ersten Mal)" \
  "Récupération de Python (25 Mo, la première fois seulement)"
!insertmacro TEXT CANNOT_START \
  "The setup's own program cannot be started; start the setup again, and if that does not help, get a newer one." \
  "Das eigene Programm der Installation lässt sich nicht starten; starte sie noch einmal, und wenn das nicht hilft, hole eine neuere." \
  "Le programme de l'installation ne peut être démarré ; relancez-la, et si cela n'aide pas, prenez-en une plus récente."
!insertmacro TEXT NO_PYTHON \
  "Python cannot be fetched; check the internet connection, and the proxy if there is one, then start the setup again." \
  "Python lässt sich nicht holen; prüfe die Internetverbindung und gegebenenfalls den Proxy, dann starte die Installation noch einmal." \
  "Python ne peut être récupéré ; vérifiez la connexion à internet, et le proxy s'il y en a un, puis relancez l'installation."
!insertmacro TEXT NOT_DONE \
  "Not done yet" "Noch nicht fertig" "Pas encore terminé"
!insertmacro TEXT NOT_DONE_ABOUT \
  "The last line says why; what is there is kept." \
  "Die letzte Zeile sagt warum; was da ist, bleibt." \
  "La dernière ligne dit pourquoi ; ce qui est là est gardé."
!insertmacro TEXT STOP \
  "Stop here? What was fetched is kept, and the setup goes on from there when you start it again." \
  "Hier anhalten? Was geholt wurde, bleibt, und die Installation macht dort weiter, wenn du sie wieder startest." \
  "S'arrêter ici ? Ce qui a été récupéré est gardé, et l'installation reprendra de là quand vous la relancerez."
!insertmacro TEXT STILL_RUNNING \
  "Shoal is running; quit it from its icon in the tray, then try again." \
  "Shoal läuft; beende es über sein Symbol im Infobereich, dann versuche es noch einmal." \
  "Shoal est en marche ; quittez-le par son icône dans la zone de notification, puis réessayez."
!insertmacro TEXT NOT_ARM \
  "Shoal runs on x86-64 processors only; this computer has an ARM processor." \
  "Shoal läuft nur auf x86-64-Prozessoren; dieser Computer hat einen ARM-Prozessor." \
  "Shoal ne fonctionne que sur les processeurs x86-64 ; cet ordinateur a un processeur ARM."
!insertmacro TEXT DECLINED \
  "Nothing was changed in Windows; start the setup again when you want to go on, or remove Shoal in Windows' list of programs." \
  "An Windows wurde nichts geändert; starte die Installation wieder, wenn du weitermachen willst, oder entferne Shoal in der Programmliste von Windows." \
  "Rien n'a été changé dans Windows ; relancez l'installation pour continuer, ou supprimez Shoal dans la liste des programmes de Windows."
!insertmacro TEXT ENABLE_WSL \
  "Shoal's engine runs in the Windows Subsystem for Linux, a part of Windows that is not turned on here. Turn it on? Windows asks for an administrator's rights for this one step, and has to be restarted afterwards." \
  "Shoals Engine läuft im Windows-Subsystem für Linux, einem Teil von Windows, der hier nicht eingeschaltet ist. Einschalten? Windows fragt für diesen einen Schritt nach Administratorrechten und muss danach neu gestartet werden." \
  "Le moteur de Shoal tourne dans le sous-système Windows pour Linux, une partie de Windows qui n'est pas activée ici. L'activer ? Windows demande des droits d'administrateur pour cette seule étape, et doit être redémarré ensuite."
!insertmacro TEXT RESTART_NEEDED \
  "Windows has to be restarted before the setup can go on (restart, not shut down); it goes on by itself when you have signed in again." \
  "Windows muss neu gestartet werden, bevor die Installation weitermachen kann (neu starten, nicht herunterfahren); sie macht von selbst weiter, wenn du dich wieder angemeldet hast." \
  "Windows doit être redémarré avant que l'installation puisse continuer (redémarrer, et non arrêter) ; elle continue d'elle-même quand vous avez rouvert votre session."
!insertmacro TEXT RESTART_NOW \
  "Restart now?" "Jetzt neu starten?" "Redémarrer maintenant ?"
!insertmacro TEXT DESKTOP \
  "Icon on the desktop" "Symbol auf dem Desktop" "Icône sur le bureau"
!insertmacro TEXT REACHABLE \
  "Direct connections" "Direkte Verbindungen" "Connexions directes"
!insertmacro TEXT MAIN_ABOUT \
  "Tray icon and windows, and the engine in a Linux of its own. Up to 6 GB, with an NVIDIA card up to 14 GB, are fetched and unpacked." \
  "Symbol und Fenster, und die Engine in einem eigenen Linux. Bis zu 6 GB, mit einer NVIDIA-Karte bis zu 14 GB, werden geholt und entpackt." \
  "Icône et fenêtres, et le moteur dans son propre Linux. Jusqu'à 6 Go, avec une carte NVIDIA jusqu'à 14 Go, sont récupérés et déballés."
!insertmacro TEXT DESKTOP_ABOUT \
  "Starts Shoal." "Startet Shoal." "Démarre Shoal."
!insertmacro TEXT REACHABLE_ABOUT \
  "Lets others connect here; not needed. Opens a port in the firewall, which asks for an administrator's rights, and lets all of WSL share this computer's network (Windows 11)." \
  "Andere können sich hierher verbinden; nicht nötig. Öffnet einen Port in der Firewall, wofür Administratorrechte nötig sind, und lässt ganz WSL das Netz dieses Computers mitbenutzen (Windows 11)." \
  "Les autres peuvent se connecter ici ; pas nécessaire. Ouvre un port du pare-feu, ce qui demande des droits d'administrateur, et laisse tout WSL partager le réseau de cet ordinateur (Windows 11)."
!insertmacro TEXT KEEP_DATA \
  "Keep your chats, batches and settings for a later installation? Models are deleted either way." \
  "Deine Gespräche, Stapel und Einstellungen für eine spätere Installation behalten? Modelle werden in jedem Fall gelöscht." \
  "Garder vos conversations, lots et réglages pour une installation future ? Les modèles sont supprimés dans tous les cas."
!insertmacro TEXT NOTHING_REMOVED \
  "Nothing was removed." "Es wurde nichts entfernt." "Rien n'a été supprimé."
