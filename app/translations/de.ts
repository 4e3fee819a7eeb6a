<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
<context>
    <name>app</name>
    <message>
        <source> GB</source>
        <translation> GB</translation>
    </message>
    <message>
        <source> MB</source>
        <translation> MB</translation>
    </message>
    <message>
        <source> min</source>
        <translation> Min.</translation>
    </message>
    <message>
        <source>&amp;Activity</source>
        <translation>Akti&amp;vität</translation>
    </message>
    <message>
        <source>&amp;Alone on this computer: nothing leaves it</source>
        <translation>&amp;Allein auf diesem Computer: Nichts verlässt ihn</translation>
    </message>
    <message>
        <source>&amp;Apply</source>
        <translation>Übe&amp;rnehmen</translation>
    </message>
    <message>
        <source>&amp;Back</source>
        <translation>&amp;Zurück</translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation>&amp;Abbrechen</translation>
    </message>
    <message>
        <source>&amp;Copy the conversation</source>
        <translation>Unterhaltung &amp;kopieren</translation>
    </message>
    <message>
        <source>&amp;Copy the invite</source>
        <translation>&amp;Einladung kopieren</translation>
    </message>
    <message>
        <source>&amp;Delete</source>
        <translation>&amp;Löschen</translation>
    </message>
    <message>
        <source>&amp;Download</source>
        <translation>&amp;Download</translation>
    </message>
    <message>
        <source>&amp;Download and set up</source>
        <translation>&amp;Herunterladen und einrichten</translation>
    </message>
    <message>
        <source>&amp;File</source>
        <translation>&amp;Datei</translation>
    </message>
    <message>
        <source>&amp;Finish, then pause</source>
        <translation>&amp;Abschließen, dann pausieren</translation>
    </message>
    <message>
        <source>&amp;Found a swarm and invite others</source>
        <translation>Einen Schwarm &amp;gründen und andere einladen</translation>
    </message>
    <message>
        <source>&amp;Insert column</source>
        <translation>Spalte &amp;einfügen</translation>
    </message>
    <message>
        <source>&amp;Interrupt</source>
        <translation>&amp;Unterbrechen</translation>
    </message>
    <message>
        <source>&amp;Join a swarm with an invite</source>
        <translation>Mit einer Einladung einem Schwarm be&amp;itreten</translation>
    </message>
    <message>
        <source>&amp;Keep a copy…</source>
        <translation>Kopie &amp;aufbewahren …</translation>
    </message>
    <message>
        <source>&amp;Keep serving</source>
        <translation>&amp;Weiter bereitstellen</translation>
    </message>
    <message>
        <source>&amp;Log</source>
        <translation>Pro&amp;tokoll</translation>
    </message>
    <message>
        <source>&amp;Longest answer</source>
        <translation>&amp;Längste Antwort</translation>
    </message>
    <message>
        <source>&amp;Measure</source>
        <translation>&amp;Messen</translation>
    </message>
    <message>
        <source>&amp;Measure again</source>
        <translation>Erneut &amp;messen</translation>
    </message>
    <message>
        <source>&amp;My part</source>
        <translation>&amp;Mein Teil</translation>
    </message>
    <message>
        <source>&amp;New batch</source>
        <translation>&amp;Neuer Stapel</translation>
    </message>
    <message>
        <source>&amp;New chat</source>
        <translation>&amp;Neuer Chat</translation>
    </message>
    <message>
        <source>&amp;Next</source>
        <translation>&amp;Weiter</translation>
    </message>
    <message>
        <source>&amp;Open a file…</source>
        <translation>Datei öff&amp;nen …</translation>
    </message>
    <message>
        <source>&amp;Open chat</source>
        <translation>&amp;Chat öffnen</translation>
    </message>
    <message>
        <source>&amp;Pause</source>
        <translation>&amp;Pause</translation>
    </message>
    <message>
        <source>&amp;Pause now</source>
        <translation>&amp;Jetzt pausieren</translation>
    </message>
    <message>
        <source>&amp;Pause until I resume</source>
        <translation>&amp;Pausieren, bis ich fortsetze</translation>
    </message>
    <message>
        <source>&amp;Preset</source>
        <translation>&amp;Vorlage</translation>
    </message>
    <message>
        <source>&amp;Private: only who has the invite gets in</source>
        <translation>&amp;Privat: Nur wer die Einladung hat, kommt hinein</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>&amp;Beenden</translation>
    </message>
    <message>
        <source>&amp;Quit (engine keeps running)</source>
        <translation>&amp;Beenden (die Engine läuft weiter)</translation>
    </message>
    <message>
        <source>&amp;Quit Shoal</source>
        <translation>Shoal &amp;beenden</translation>
    </message>
    <message>
        <source>&amp;Remove what was downloaded</source>
        <translation>Heruntergeladenes &amp;entfernen</translation>
    </message>
    <message>
        <source>&amp;Rename</source>
        <translation>&amp;Umbenennen</translation>
    </message>
    <message>
        <source>&amp;Restore a copy…</source>
        <translation>Kopie &amp;wiederherstellen …</translation>
    </message>
    <message>
        <source>&amp;Resume</source>
        <translation>&amp;Fortsetzen</translation>
    </message>
    <message>
        <source>&amp;Save the archive…</source>
        <translation>Archiv &amp;speichern …</translation>
    </message>
    <message>
        <source>&amp;Start again now</source>
        <translation>Jetzt &amp;neu starten</translation>
    </message>
    <message>
        <source>&amp;Start the engine</source>
        <translation>Engine starte&amp;n</translation>
    </message>
    <message>
        <source>&amp;Start the setup</source>
        <translation>Setup &amp;starten</translation>
    </message>
    <message>
        <source>&amp;Start without these rows</source>
        <translation>Ohne diese Zeilen &amp;starten</translation>
    </message>
    <message>
        <source>&amp;System prompt</source>
        <translation>&amp;System-Prompt</translation>
    </message>
    <message>
        <source>&amp;Take back</source>
        <translation>&amp;Verwerfen</translation>
    </message>
    <message>
        <source>&amp;Try again</source>
        <translation>E&amp;rneut versuchen</translation>
    </message>
    <message>
        <source>&amp;Update to Shoal {version}</source>
        <translation>Auf Shoal {version} a&amp;ktualisieren</translation>
    </message>
    <message>
        <source>&amp;Upload</source>
        <translation>&amp;Upload</translation>
    </message>
    <message>
        <source>; the first {n}:</source>
        <translation>; die ersten {n}:</translation>
    </message>
    <message>
        <source>A PEM file to trust besides the system's, such as your company's. Empty: none.</source>
        <translation>Eine PEM-Datei, der zusätzlich zu denen des Systems vertraut wird, etwa die deiner Firma. Leer: keine.</translation>
    </message>
    <message>
        <source>A block of {model} takes {block_mb} MB, but the limits leave {room_mb} MB for blocks; allow more memory, or choose a smaller model.</source>
        <translation>Ein Block von {model} braucht {block_mb} MB, aber die Grenzen lassen {room_mb} MB für Blöcke; erlaube mehr Speicher oder wähle ein kleineres Modell.</translation>
    </message>
    <message>
        <source>A chat on this computer alone would get about {rate} tokens a second.</source>
        <translation>Ein Chat allein auf diesem Computer käme auf etwa {rate} Token pro Sekunde.</translation>
    </message>
    <message>
        <source>A good all-rounder in many languages.</source>
        <translation>Ein guter Allrounder in vielen Sprachen.</translation>
    </message>
    <message>
        <source>A key tells your node from others. Keep a copy, to be the same node on another computer; whoever has the copy and its passphrase can pose as you.</source>
        <translation>Ein Schlüssel unterscheidet deinen Knoten von anderen. Bewahre eine Kopie auf, um auf einem anderen Computer derselbe Knoten zu sein; wer die Kopie und ihre Passphrase hat, kann sich für dich ausgeben.</translation>
    </message>
    <message>
        <source>A message takes at most {n} files.</source>
        <translation>Eine Nachricht nimmt höchstens {n} Dateien.</translation>
    </message>
    <message>
        <source>A quote (") is opened here and never closed; close it, or double it if it is text.</source>
        <translation>Hier wird ein Anführungszeichen (") geöffnet und nie geschlossen; schließe es, oder verdopple es, wenn es zum Text gehört.</translation>
    </message>
    <message>
        <source>A swarm runs the model that it was founded with; leave it to choose another.</source>
        <translation>Ein Schwarm läuft mit dem Modell, mit dem er gegründet wurde; verlasse ihn, um ein anderes zu wählen.</translation>
    </message>
    <message>
        <source>A table (CSV), a text, or lines of JSON</source>
        <translation>Eine Tabelle (CSV), ein Text oder JSON-Zeilen</translation>
    </message>
    <message>
        <source>Address of the API</source>
        <translation>Adresse der API</translation>
    </message>
    <message>
        <source>Again</source>
        <translation>Noch einmal</translation>
    </message>
    <message>
        <source>All blocks are held, but no way through them is open now.</source>
        <translation>Alle Blöcke sind da, aber gerade ist kein Weg durch sie offen.</translation>
    </message>
    <message>
        <source>All conversations here use it.</source>
        <translation>Alle Unterhaltungen hier nutzen es.</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>Alle Dateien (*)</translation>
    </message>
    <message>
        <source>Almost ready…</source>
        <translation>Gleich so weit …</translation>
    </message>
    <message>
        <source>Another model is loaded for all conversations on this computer.</source>
        <translation>Ein anderes Modell wird für alle Unterhaltungen auf diesem Computer geladen.</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>Antwort</translation>
    </message>
    <message>
        <source>Answer once more (Ctrl+R)</source>
        <translation>Noch einmal antworten (Strg+R)</translation>
    </message>
    <message>
        <source>Applying…</source>
        <translation>Wird übernommen …</translation>
    </message>
    <message>
        <source>Ask anything</source>
        <translation>Frag, was du willst</translation>
    </message>
    <message>
        <source>Asking the engine…</source>
        <translation>Die Engine wird gefragt …</translation>
    </message>
    <message>
        <source>Attach text files</source>
        <translation>Textdateien anhängen</translation>
    </message>
    <message>
        <source>Attach text files (Ctrl+O)</source>
        <translation>Textdateien anhängen (Strg+O)</translation>
    </message>
    <message>
        <source>Bandwidth</source>
        <translation>Bandbreite</translation>
    </message>
    <message>
        <source>Batches</source>
        <translation>Stapel</translation>
    </message>
    <message>
        <source>Be&amp;gin</source>
        <translation>&amp;Beginnen</translation>
    </message>
    <message>
        <source>Begin another conversation (Ctrl+N)</source>
        <translation>Eine andere Unterhaltung beginnen (Strg+N)</translation>
    </message>
    <message>
        <source>Beginning …</source>
        <translation>Es geht los …</translation>
    </message>
    <message>
        <source>Beginning…</source>
        <translation>Es beginnt …</translation>
    </message>
    <message>
        <source>Being answered</source>
        <translation>Wird beantwortet</translation>
    </message>
    <message>
        <source>Beside it</source>
        <translation>Daneben</translation>
    </message>
    <message>
        <source>Beside it: {nodes}</source>
        <translation>Daneben: {nodes}</translation>
    </message>
    <message>
        <source>Block {span}</source>
        <translation>Block {span}</translation>
    </message>
    <message>
        <source>Blocks</source>
        <translation>Blöcke</translation>
    </message>
    <message>
        <source>Blocks {path}</source>
        <translation>Blöcke {path}</translation>
    </message>
    <message>
        <source>Blocks {span}</source>
        <translation>Blöcke {span}</translation>
    </message>
    <message>
        <source>Bring the conversation back</source>
        <translation>Die Unterhaltung zurückholen</translation>
    </message>
    <message>
        <source>Broken off</source>
        <translation>Abgebrochen</translation>
    </message>
    <message>
        <source>By now the swarm needs blocks {span} more.</source>
        <translation>Inzwischen braucht der Schwarm die Blöcke {span} dringender.</translation>
    </message>
    <message>
        <source>By now the swarm needs nobody to move.</source>
        <translation>Inzwischen muss im Schwarm niemand mehr wechseln.</translation>
    </message>
    <message>
        <source>By pauses between steps; the driver's own limit, which slows down other programs, too, stays as it is.</source>
        <translation>Durch Pausen zwischen den Schritten; die Grenze des Treibers selbst, die auch andere Programme bremst, bleibt, wie sie ist.</translation>
    </message>
    <message>
        <source>Cache</source>
        <translation>Cache</translation>
    </message>
    <message>
        <source>Cache in RAM</source>
        <translation>Cache im RAM</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Cancelled</source>
        <translation>Abgebrochen</translation>
    </message>
    <message>
        <source>Certificates for downloads</source>
        <translation>Zertifikate für Downloads</translation>
    </message>
    <message>
        <source>Change &amp;swarm</source>
        <translation>Schwarm &amp;wechseln</translation>
    </message>
    <message>
        <source>Check all rows and start</source>
        <translation>Alle Zeilen prüfen und starten</translation>
    </message>
    <message>
        <source>Check and &amp;start</source>
        <translation>Prüfen und &amp;starten</translation>
    </message>
    <message>
        <source>Checking the rows</source>
        <translation>Zeilen werden geprüft</translation>
    </message>
    <message>
        <source>Checking {model}</source>
        <translation>{model} wird geprüft</translation>
    </message>
    <message>
        <source>Choose a file, or drop one here; then you see its first rows as they are asked.</source>
        <translation>Wähle eine Datei oder lege eine hier ab; dann siehst du ihre ersten Zeilen so, wie sie an das Modell gehen.</translation>
    </message>
    <message>
        <source>Choose a folder for models</source>
        <translation>Einen Ordner für Modelle wählen</translation>
    </message>
    <message>
        <source>Choose another fol&amp;der…</source>
        <translation>Anderen Or&amp;dner wählen …</translation>
    </message>
    <message>
        <source>Choose the file for the results</source>
        <translation>Datei für die Ergebnisse wählen</translation>
    </message>
    <message>
        <source>Choose the file with the rows</source>
        <translation>Datei mit den Zeilen wählen</translation>
    </message>
    <message>
        <source>Choose the model</source>
        <translation>Modell wählen</translation>
    </message>
    <message>
        <source>Choose: {name}</source>
        <translation>Festlegen: {name}</translation>
    </message>
    <message>
        <source>Choose: {what}</source>
        <translation>Wählen: {what}</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>Wählen …</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>Code</translation>
    </message>
    <message>
        <source>Colou&amp;rs</source>
        <translation>Fa&amp;rben</translation>
    </message>
    <message>
        <source>Colours</source>
        <translation>Farben</translation>
    </message>
    <message>
        <source>Come back after so much quiet</source>
        <translation>Zurückkommen nach so viel Ruhe</translation>
    </message>
    <message>
        <source>Comes with Shoal; small enough for any computer. For trying out, not for answers to rely on.</source>
        <translation>Kommt mit Shoal; klein genug für jeden Computer. Zum Ausprobieren, nicht für Antworten, auf die man sich verlässt.</translation>
    </message>
    <message>
        <source>Command that installs the new version</source>
        <translation>Befehl, der die neue Version installiert</translation>
    </message>
    <message>
        <source>Compute on</source>
        <translation>Rechnen auf</translation>
    </message>
    <message>
        <source>Computes on</source>
        <translation>Rechnet auf</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>Weiter</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>Unterhaltung</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>Unterhaltungen</translation>
    </message>
    <message>
        <source>Converting {model}</source>
        <translation>{model} wird umgewandelt</translation>
    </message>
    <message>
        <source>Cooling down: the GPU has {degrees} °C.</source>
        <translation>Die GPU kühlt ab: Sie hat {degrees} °C.</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy &amp;example</source>
        <translation>&amp;Beispiel kopieren</translation>
    </message>
    <message>
        <source>Copy a&amp;ddress</source>
        <translation>&amp;Adresse kopieren</translation>
    </message>
    <message>
        <source>Copy t&amp;oken</source>
        <translation>&amp;Token kopieren</translation>
    </message>
    <message>
        <source>Copy the &amp;command</source>
        <translation>&amp;Befehl kopieren</translation>
    </message>
    <message>
        <source>Copy the code</source>
        <translation>Den Code kopieren</translation>
    </message>
    <message>
        <source>Copy the message</source>
        <translation>Die Nachricht kopieren</translation>
    </message>
    <message>
        <source>Cut off: the answer reached its length limit</source>
        <translation>Abgeschnitten: Die Antwort hat ihre größte Länge erreicht</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>Löschen</translation>
    </message>
    <message>
        <source>Delete {model}</source>
        <translation>{model} löschen</translation>
    </message>
    <message>
        <source>Dia&amp;gnostics</source>
        <translation>&amp;Diagnose</translation>
    </message>
    <message>
        <source>Disk space for models</source>
        <translation>Speicherplatz für Modelle</translation>
    </message>
    <message>
        <source>Do not attach {name}</source>
        <translation>{name} nicht anhängen</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>Fertig</translation>
    </message>
    <message>
        <source>Done, with failed rows</source>
        <translation>Fertig, mit fehlgeschlagenen Zeilen</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>Download</translation>
    </message>
    <message>
        <source>Downloading the update</source>
        <translation>Die neue Version wird geladen</translation>
    </message>
    <message>
        <source>Downloading {model}</source>
        <translation>{model} wird heruntergeladen</translation>
    </message>
    <message>
        <source>Downloads of models included.</source>
        <translation>Auch beim Herunterladen von Modellen.</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>Edit and ask anew (Ctrl+E: the last)</source>
        <translation>Bearbeiten und neu fragen (Strg+E: die letzte)</translation>
    </message>
    <message>
        <source>Empty: the usual place. Models that are elsewhere stay there.</source>
        <translation>Leer: der übliche Ort. Modelle, die anderswo liegen, bleiben dort.</translation>
    </message>
    <message>
        <source>Enter sends, Shift+Enter starts a new line</source>
        <translation>Eingabe sendet, Umschalt+Eingabe beginnt eine neue Zeile</translation>
    </message>
    <message>
        <source>Everything is paused for a while.</source>
        <translation>Alles ist für eine Weile pausiert.</translation>
    </message>
    <message>
        <source>Everything is paused until tomorrow.</source>
        <translation>Alles ist pausiert bis morgen.</translation>
    </message>
    <message>
        <source>Everything is paused until you resume.</source>
        <translation>Alles ist pausiert bis auf Weiteres.</translation>
    </message>
    <message>
        <source>Example</source>
        <translation>Beispiel</translation>
    </message>
    <message>
        <source>Export as &amp;JSON…</source>
        <translation>Als &amp;JSON exportieren …</translation>
    </message>
    <message>
        <source>Export as &amp;Markdown…</source>
        <translation>Als &amp;Markdown exportieren …</translation>
    </message>
    <message>
        <source>Export the chat</source>
        <translation>Den Chat exportieren</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>Fehlgeschlagen</translation>
    </message>
    <message>
        <source>Fetching PyTorch, the largest part …</source>
        <translation>PyTorch, der größte Teil, wird geholt …</translation>
    </message>
    <message>
        <source>Fetching Shoal {version}: {done} of {total}.</source>
        <translation>Shoal {version} wird geladen: {done} von {total}.</translation>
    </message>
    <message>
        <source>Fetching the libraries it needs …</source>
        <translation>Die nötigen Bibliotheken werden geholt …</translation>
    </message>
    <message>
        <source>File for the results</source>
        <translation>Datei für die Ergebnisse</translation>
    </message>
    <message>
        <source>File with the rows</source>
        <translation>Datei mit den Zeilen</translation>
    </message>
    <message>
        <source>Files of the archive</source>
        <translation>Dateien des Archivs</translation>
    </message>
    <message>
        <source>Finishing running requests, then moving to blocks {span}.</source>
        <translation>Laufende Anfragen werden beendet, dann Wechsel zu den Blöcken {span}.</translation>
    </message>
    <message>
        <source>Finishing running requests, then pausing.</source>
        <translation>Laufende Anfragen werden beendet, dann Pause.</translation>
    </message>
    <message>
        <source>Finishing {n} session, then pausing|Finishing {n} sessions, then pausing</source>
        <translation>Schließt {n} Sitzung ab, dann Pause|Schließt {n} Sitzungen ab, dann Pause</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Folder for models</source>
        <translation>Ordner für Modelle</translation>
    </message>
    <message>
        <source>For all connections together. With a limit, nothing is relayed for others.</source>
        <translation>Für alle Verbindungen zusammen. Mit einer Grenze wird nichts für andere weitergeleitet.</translation>
    </message>
    <message>
        <source>For&amp;mat</source>
        <translation>&amp;Format</translation>
    </message>
    <message>
        <source>Forget</source>
        <translation>Vergessen</translation>
    </message>
    <message>
        <source>Forget the chosen preset</source>
        <translation>Die gewählte Vorlage vergessen</translation>
    </message>
    <message>
        <source>Format of the file</source>
        <translation>Format der Datei</translation>
    </message>
    <message>
        <source>Found by itself</source>
        <translation>Selbst erkannt</translation>
    </message>
    <message>
        <source>GPU load</source>
        <translation>GPU-Last</translation>
    </message>
    <message>
        <source>GPU memory</source>
        <translation>GPU-Speicher</translation>
    </message>
    <message>
        <source>GPU temperature</source>
        <translation>GPU-Temperatur</translation>
    </message>
    <message>
        <source>Getting ready</source>
        <translation>Wird vorbereitet</translation>
    </message>
    <message>
        <source>Getting ready…</source>
        <translation>Wird vorbereitet …</translation>
    </message>
    <message>
        <source>Give on battery, too</source>
        <translation>Auch im Akkubetrieb geben</translation>
    </message>
    <message>
        <source>Give over metered connections, too</source>
        <translation>Auch über getaktete Verbindungen geben</translation>
    </message>
    <message>
        <source>Give this invite to those who shall join. It contains the key to the swarm.</source>
        <translation>Gib diese Einladung denen, die beitreten sollen. Sie enthält den Schlüssel zum Schwarm.</translation>
    </message>
    <message>
        <source>Give when you have been away for</source>
        <translation>Geben, wenn du so lange weg bist</translation>
    </message>
    <message>
        <source>Go on in the &amp;tray when all windows are closed</source>
        <translation>Im &amp;Infobereich weiterlaufen, wenn alle Fenster zu sind</translation>
    </message>
    <message>
        <source>Go to the newest message</source>
        <translation>Zur neuesten Nachricht</translation>
    </message>
    <message>
        <source>Go to the newest message (Ctrl+End)</source>
        <translation>Zur neuesten Nachricht (Strg+Ende)</translation>
    </message>
    <message>
        <source>High: before other batches</source>
        <translation>Hoch: vor anderen Stapeln</translation>
    </message>
    <message>
        <source>Hold blocks; without, you only use the swarm</source>
        <translation>Blöcke halten; ohne nutzt du den Schwarm nur</translation>
    </message>
    <message>
        <source>Hours to give</source>
        <translation>Zeiten, in denen du gibst</translation>
    </message>
    <message>
        <source>How full the model's context is</source>
        <translation>Wie voll der Kontext des Modells ist</translation>
    </message>
    <message>
        <source>How to begin</source>
        <translation>Wie es beginnt</translation>
    </message>
    <message>
        <source>I&amp;nstall Shoal {version}</source>
        <translation>Shoal {version} i&amp;nstallieren</translation>
    </message>
    <message>
        <source>Id</source>
        <translation>Kennung</translation>
    </message>
    <message>
        <source>Identity</source>
        <translation>Identität</translation>
    </message>
    <message>
        <source>In a swarm, that line passes on at most {rate} tokens a second.</source>
        <translation>In einem Schwarm gibt diese Leitung höchstens {rate} Token pro Sekunde weiter.</translation>
    </message>
    <message>
        <source>In no swarm: the model runs on this computer alone.</source>
        <translation>In keinem Schwarm: Das Modell läuft allein auf diesem Computer.</translation>
    </message>
    <message>
        <source>In the private swarm {name}.</source>
        <translation>Im privaten Schwarm {name}.</translation>
    </message>
    <message>
        <source>In the public swarm {name}.</source>
        <translation>Im öffentlichen Schwarm {name}.</translation>
    </message>
    <message>
        <source>In use</source>
        <translation>In Gebrauch</translation>
    </message>
    <message>
        <source>Insert a column into the prompt</source>
        <translation>Eine Spalte in den Prompt einfügen</translation>
    </message>
    <message>
        <source>Instructions before each prompt; may be empty</source>
        <translation>Anweisungen vor jedem Prompt; kann leer bleiben</translation>
    </message>
    <message>
        <source>Interrupted: Shoal ended meanwhile</source>
        <translation>Unterbrochen: Shoal wurde währenddessen beendet</translation>
    </message>
    <message>
        <source>Interrupting …</source>
        <translation>Wird unterbrochen …</translation>
    </message>
    <message>
        <source>Invite</source>
        <translation>Einladung</translation>
    </message>
    <message>
        <source>Invites (*.shoal);;All files (*)</source>
        <translation>Einladungen (*.shoal);;Alle Dateien (*)</translation>
    </message>
    <message>
        <source>It ended without saying why.</source>
        <translation>Es endete, ohne zu sagen, warum.</translation>
    </message>
    <message>
        <source>It ended {count} times in a row. {reason} The log is {file}.</source>
        <translation>Sie endete {count}-mal hintereinander. {reason} Das Protokoll ist {file}.</translation>
    </message>
    <message>
        <source>It holds no blocks: it only uses what others give.</source>
        <translation>Er hält keine Blöcke: Er nutzt nur, was andere geben.</translation>
    </message>
    <message>
        <source>Its name</source>
        <translation>Sein Name</translation>
    </message>
    <message>
        <source>Joining the swarm {name}.</source>
        <translation>Tritt dem Schwarm {name} bei.</translation>
    </message>
    <message>
        <source>Keep a copy of the identity</source>
        <translation>Eine Kopie der Identität aufbewahren</translation>
    </message>
    <message>
        <source>Keep as preset</source>
        <translation>Als Vorlage sichern</translation>
    </message>
    <message>
        <source>Keep as preset…</source>
        <translation>Als Vorlage sichern …</translation>
    </message>
    <message>
        <source>Keep these settings as a preset</source>
        <translation>Diese Einstellungen als Vorlage sichern</translation>
    </message>
    <message>
        <source>Lan&amp;guage</source>
        <translation>Spra&amp;che</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>Sprache</translation>
    </message>
    <message>
        <source>Last &amp;day</source>
        <translation>Letzter T&amp;ag</translation>
    </message>
    <message>
        <source>Last &amp;hour</source>
        <translation>Letzte St&amp;unde</translation>
    </message>
    <message>
        <source>Last &amp;week</source>
        <translation>Letzte Wo&amp;che</translation>
    </message>
    <message>
        <source>Leave free on the disk</source>
        <translation>Auf der Festplatte frei lassen</translation>
    </message>
    <message>
        <source>Leave the message as it was</source>
        <translation>Die Nachricht lassen, wie sie war</translation>
    </message>
    <message>
        <source>Let the GPU cool down above</source>
        <translation>GPU abkühlen lassen über</translation>
    </message>
    <message>
        <source>Let the GPU draw at most</source>
        <translation>Die GPU höchstens aufnehmen lassen</translation>
    </message>
    <message>
        <source>Let the answer go on (Ctrl+G)</source>
        <translation>Die Antwort weitergehen lassen (Strg+G)</translation>
    </message>
    <message>
        <source>Limits</source>
        <translation>Grenzen</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>Line {line}, column {column}: {text}</source>
        <translation>Zeile {line}, Spalte {column}: {text}</translation>
    </message>
    <message>
        <source>Line {line}: {text}</source>
        <translation>Zeile {line}: {text}</translation>
    </message>
    <message>
        <source>Lines of JSON (*.jsonl)</source>
        <translation>JSON-Zeilen (*.jsonl)</translation>
    </message>
    <message>
        <source>Lines of JSON (OpenAI's too)</source>
        <translation>JSON-Zeilen (auch die von OpenAI)</translation>
    </message>
    <message>
        <source>Lines of JSON with {n} column|Lines of JSON with {n} columns</source>
        <translation>JSON-Zeilen mit {n} Spalte|JSON-Zeilen mit {n} Spalten</translation>
    </message>
    <message>
        <source>Lines of JSON, one request each</source>
        <translation>JSON-Zeilen, je eine Anfrage</translation>
    </message>
    <message>
        <source>Links</source>
        <translation>Verbindungen</translation>
    </message>
    <message>
        <source>Links to other nodes</source>
        <translation>Verbindungen zu anderen Knoten</translation>
    </message>
    <message>
        <source>Loading blocks {span}</source>
        <translation>Blöcke {span} werden geladen</translation>
    </message>
    <message>
        <source>Loading blocks {span}.</source>
        <translation>Blöcke {span} werden geladen.</translation>
    </message>
    <message>
        <source>Local</source>
        <translation>Lokal</translation>
    </message>
    <message>
        <source>Long, careful answers; needs many computers.</source>
        <translation>Lange, sorgfältige Antworten; braucht viele Computer.</translation>
    </message>
    <message>
        <source>Longest answer</source>
        <translation>Längste Antwort</translation>
    </message>
    <message>
        <source>Longest answer, in tokens</source>
        <translation>Längste Antwort in Token</translation>
    </message>
    <message>
        <source>Look for a new &amp;version</source>
        <translation>Nach neuer &amp;Version sehen</translation>
    </message>
    <message>
        <source>Look for a new version once a &amp;day</source>
        <translation>Einmal am &amp;Tag nach einer neuen Version sehen</translation>
    </message>
    <message>
        <source>Looking at this computer …</source>
        <translation>Dieser Computer wird angesehen …</translation>
    </message>
    <message>
        <source>Looking for a place in the swarm.</source>
        <translation>Sucht einen Platz im Schwarm.</translation>
    </message>
    <message>
        <source>Looking up {model}</source>
        <translation>{model} wird nachgeschlagen</translation>
    </message>
    <message>
        <source>Low: after other batches</source>
        <translation>Niedrig: nach anderen Stapeln</translation>
    </message>
    <message>
        <source>Making a place of its own for it …</source>
        <translation>Ein eigener Platz dafür wird angelegt …</translation>
    </message>
    <message>
        <source>Measuring this computer</source>
        <translation>Dieser Computer wird gemessen</translation>
    </message>
    <message>
        <source>Measuring…</source>
        <translation>Wird gemessen …</translation>
    </message>
    <message>
        <source>Members of {swarm}, who were invited, can read your messages.</source>
        <translation>Mitglieder von {swarm}, die eingeladen wurden, können deine Nachrichten lesen.</translation>
    </message>
    <message>
        <source>Memor&amp;y</source>
        <translation>&amp;Speicher</translation>
    </message>
    <message>
        <source>Memory in use</source>
        <translation>Belegter Speicher</translation>
    </message>
    <message>
        <source>Memory of Shoal</source>
        <translation>Speicher von Shoal</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>Nachricht</translation>
    </message>
    <message>
        <source>Min p</source>
        <translation>Min-p</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Model that proposes them</source>
        <translation>Modell, das sie vorschlägt</translation>
    </message>
    <message>
        <source>Model {model}: choose another</source>
        <translation>Modell {model}: ein anderes wählen</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Models are kept in {folder}, where {free} are free.</source>
        <translation>Modelle liegen in {folder}; dort sind {free} frei.</translation>
    </message>
    <message>
        <source>Models will be kept in {folder}.</source>
        <translation>Modelle werden in {folder} liegen.</translation>
    </message>
    <message>
        <source>More about this chat</source>
        <translation>Mehr zu diesem Chat</translation>
    </message>
    <message>
        <source>Most of the time goes into {what}: {time} of {whole} for each token.</source>
        <translation>Am längsten dauert {what}: {time} von {whole} je Token.</translation>
    </message>
    <message>
        <source>Move to blocks that the swarm needs more</source>
        <translation>Zu Blöcken wechseln, die der Schwarm dringender braucht</translation>
    </message>
    <message>
        <source>Moving to blocks {span}.</source>
        <translation>Wechsel zu den Blöcken {span}.</translation>
    </message>
    <message>
        <source>My name</source>
        <translation>Mein Name</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>Name of the swarm</source>
        <translation>Name des Schwarms</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netz</translation>
    </message>
    <message>
        <source>New batch</source>
        <translation>Neuer Stapel</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>No limit of its own</source>
        <translation>Ohne eigene Grenze</translation>
    </message>
    <message>
        <source>No links now; they open when tokens travel.</source>
        <translation>Keine Verbindungen; sie öffnen sich, wenn Token unterwegs sind.</translation>
    </message>
    <message>
        <source>No links: nobody else is in the swarm now. Invite somebody.</source>
        <translation>Keine Verbindungen: Sonst ist gerade niemand im Schwarm. Lade jemanden ein.</translation>
    </message>
    <message>
        <source>No links: the model runs on this computer alone.</source>
        <translation>Keine Verbindungen: Das Modell läuft allein auf diesem Computer.</translation>
    </message>
    <message>
        <source>No model yet</source>
        <translation>Noch kein Modell</translation>
    </message>
    <message>
        <source>Nobody</source>
        <translation>Niemand</translation>
    </message>
    <message>
        <source>Nobody has looked for a new version yet.</source>
        <translation>Nach einer neuen Version wurde noch nicht gesehen.</translation>
    </message>
    <message>
        <source>Nobody holds blocks {spans}, so nothing can be answered until a node with them joins.</source>
        <translation>Die Blöcke {spans} hält niemand; bis ein Knoten mit ihnen beitritt, kann nichts beantwortet werden.</translation>
    </message>
    <message>
        <source>Nobody holds some of the model's blocks now. The chat opens when a node with them joins.</source>
        <translation>Einige Blöcke des Modells hält gerade niemand. Der Chat öffnet sich, sobald ein Knoten mit ihnen beitritt.</translation>
    </message>
    <message>
        <source>Node</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>Nodes of the new version do not understand this one any more.</source>
        <translation>Knoten der neuen Version verstehen diese nicht mehr.</translation>
    </message>
    <message>
        <source>None</source>
        <translation>Keine</translation>
    </message>
    <message>
        <source>Normal</source>
        <translation>Normal</translation>
    </message>
    <message>
        <source>Not every way is measured yet.</source>
        <translation>Noch ist nicht jeder Weg gemessen.</translation>
    </message>
    <message>
        <source>Not set up yet</source>
        <translation>Noch nicht eingerichtet</translation>
    </message>
    <message>
        <source>Nothing has been asked yet. Start without these rows (each gets an error in the results), or cancel, correct the file and begin again.</source>
        <translation>Noch ging nichts an das Modell. Starte ohne diese Zeilen (in den Ergebnissen steht bei jeder ein Fehler), oder brich ab, berichtige die Datei und beginne von vorn.</translation>
    </message>
    <message>
        <source>Nothing has been downloaded yet. You can change all of this later.</source>
        <translation>Noch wurde nichts heruntergeladen. Du kannst all das später ändern.</translation>
    </message>
    <message>
        <source>Nothing is found. Try fewer or other words.</source>
        <translation>Nichts gefunden. Versuch es mit weniger oder anderen Wörtern.</translation>
    </message>
    <message>
        <source>Nothing was read from a GPU in this time.</source>
        <translation>In dieser Zeit wurde nichts von einer GPU gelesen.</translation>
    </message>
    <message>
        <source>Nothing was recorded in this time.</source>
        <translation>In dieser Zeit wurde nichts aufgezeichnet.</translation>
    </message>
    <message>
        <source>Nothing would be held</source>
        <translation>Es würde nichts gehalten</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>OK</translation>
    </message>
    <message>
        <source>Offline: no connection to the swarm</source>
        <translation>Offline: keine Verbindung zum Schwarm</translation>
    </message>
    <message>
        <source>On the disk</source>
        <translation>Auf der Platte</translation>
    </message>
    <message>
        <source>On this computer</source>
        <translation>Auf diesem Computer</translation>
    </message>
    <message>
        <source>One line each, such as blender.</source>
        <translation>Je eine Zeile, etwa blender.</translation>
    </message>
    <message>
        <source>One line each, such as mon-fri 18:00-08:00 or sat,sun. Empty: always.</source>
        <translation>Je eine Zeile, etwa mon-fri 18:00-08:00 oder sat,sun. Leer: immer.</translation>
    </message>
    <message>
        <source>One more thing: the engine</source>
        <translation>Eines noch: der Rechenteil</translation>
    </message>
    <message>
        <source>Only fail&amp;ed rows</source>
        <translation>Nur fehl&amp;geschlagene Zeilen</translation>
    </message>
    <message>
        <source>Only {held} of the {count} blocks fit: others must hold the rest.</source>
        <translation>Nur {held} der {count} Blöcke passen: Den Rest müssen andere halten.</translation>
    </message>
    <message>
        <source>Open &amp;batches</source>
        <translation>S&amp;tapel öffnen</translation>
    </message>
    <message>
        <source>Open &amp;dashboard</source>
        <translation>&amp;Dashboard öffnen</translation>
    </message>
    <message>
        <source>Open &amp;invites with Shoal: shoal:// links and .shoal files</source>
        <translation>&amp;Einladungen mit Shoal öffnen (shoal:// und .shoal)</translation>
    </message>
    <message>
        <source>Open Shoal to choose how it begins.</source>
        <translation>Öffne Shoal, um zu wählen, wie es beginnt.</translation>
    </message>
    <message>
        <source>Open an invite</source>
        <translation>Eine Einladung öffnen</translation>
    </message>
    <message>
        <source>Open the &amp;folder</source>
        <translation>&amp;Ordner öffnen</translation>
    </message>
    <message>
        <source>Open the folder of the log</source>
        <translation>Ordner des Protokolls öffnen</translation>
    </message>
    <message>
        <source>Other nodes</source>
        <translation>Andere Knoten</translation>
    </message>
    <message>
        <source>Other programs</source>
        <translation>Andere Programme</translation>
    </message>
    <message>
        <source>Outside the hours of your schedule.</source>
        <translation>Außerhalb der Zeiten, in denen du gibst.</translation>
    </message>
    <message>
        <source>Pages of the dashboard</source>
        <translation>Seiten des Dashboards</translation>
    </message>
    <message>
        <source>Pages of the settings</source>
        <translation>Seiten der Einstellungen</translation>
    </message>
    <message>
        <source>Passphrase</source>
        <translation>Passphrase</translation>
    </message>
    <message>
        <source>Passphrase, at least 8 characters</source>
        <translation>Passphrase, mindestens 8 Zeichen</translation>
    </message>
    <message>
        <source>Paste the invite: shoal://…</source>
        <translation>Einladung einfügen: shoal://…</translation>
    </message>
    <message>
        <source>Pause &amp;everything, chat too</source>
        <translation>A&amp;lles pausieren, auch den Chat</translation>
    </message>
    <message>
        <source>Pause for 1 &amp;hour</source>
        <translation>Für 1 &amp;Stunde pausieren</translation>
    </message>
    <message>
        <source>Pause until &amp;tomorrow</source>
        <translation>Bis &amp;morgen pausieren</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Pausiert</translation>
    </message>
    <message>
        <source>Paused for a while.</source>
        <translation>Pausiert für eine Weile.</translation>
    </message>
    <message>
        <source>Paused until tomorrow.</source>
        <translation>Pausiert bis morgen.</translation>
    </message>
    <message>
        <source>Paused until you resume.</source>
        <translation>Pausiert bis auf Weiteres.</translation>
    </message>
    <message>
        <source>Paused {end}</source>
        <translation>Pausiert {end}</translation>
    </message>
    <message>
        <source>Pausing…</source>
        <translation>Wird pausiert …</translation>
    </message>
    <message>
        <source>Picture of the pipeline</source>
        <translation>Bild der Pipeline</translation>
    </message>
    <message>
        <source>Please note</source>
        <translation>Zur Beachtung</translation>
    </message>
    <message>
        <source>Port</source>
        <translation>Port</translation>
    </message>
    <message>
        <source>Preparing {model}.</source>
        <translation>{model} wird vorbereitet.</translation>
    </message>
    <message>
        <source>Preset</source>
        <translation>Vorlage</translation>
    </message>
    <message>
        <source>Pri&amp;ority</source>
        <translation>Priori&amp;tät</translation>
    </message>
    <message>
        <source>Priority</source>
        <translation>Priorität</translation>
    </message>
    <message>
        <source>Priority {n}</source>
        <translation>Priorität {n}</translation>
    </message>
    <message>
        <source>Private</source>
        <translation>Privat</translation>
    </message>
    <message>
        <source>Processor threads</source>
        <translation>Prozessor-Threads</translation>
    </message>
    <message>
        <source>Programs that know OpenAI's API can use this engine.</source>
        <translation>Programme, die OpenAIs API kennen, können diese Engine nutzen.</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>Fortschritt</translation>
    </message>
    <message>
        <source>Promp&amp;t</source>
        <translation>&amp;Prompt</translation>
    </message>
    <message>
        <source>Prompt</source>
        <translation>Prompt</translation>
    </message>
    <message>
        <source>Propose tokens ahead</source>
        <translation>Token im Voraus vorschlagen</translation>
    </message>
    <message>
        <source>Proxy for downloads</source>
        <translation>Proxy für Downloads</translation>
    </message>
    <message>
        <source>Public</source>
        <translation>Öffentlich</translation>
    </message>
    <message>
        <source>Put &amp;away</source>
        <translation>Aus&amp;blenden</translation>
    </message>
    <message>
        <source>Putting in Shoal and trying it out …</source>
        <translation>Shoal wird eingesetzt und ausprobiert …</translation>
    </message>
    <message>
        <source>Quick and even-tempered; European languages.</source>
        <translation>Schnell und ausgeglichen; europäische Sprachen.</translation>
    </message>
    <message>
        <source>RAM</source>
        <translation>RAM</translation>
    </message>
    <message>
        <source>Re&amp;place this file if it is there</source>
        <translation>Diese Datei e&amp;rsetzen, falls es sie gibt</translation>
    </message>
    <message>
        <source>Re&amp;try failed rows</source>
        <translation>Fehlgeschlagene &amp;wiederholen</translation>
    </message>
    <message>
        <source>Reached by</source>
        <translation>Erreichbar für</translation>
    </message>
    <message>
        <source>Reading the first rows…</source>
        <translation>Die ersten Zeilen werden gelesen …</translation>
    </message>
    <message>
        <source>Ready with all {count} blocks of {model}</source>
        <translation>Bereit mit allen {count} Blöcken von {model}</translation>
    </message>
    <message>
        <source>Ready with blocks {span} of {model}</source>
        <translation>Bereit mit den Blöcken {span} von {model}</translation>
    </message>
    <message>
        <source>Ready with {model}</source>
        <translation>Bereit mit {model}</translation>
    </message>
    <message>
        <source>Ready. You can chat now.</source>
        <translation>Bereit. Du kannst jetzt chatten.</translation>
    </message>
    <message>
        <source>Really delete</source>
        <translation>Wirklich löschen</translation>
    </message>
    <message>
        <source>Reconnecting to the engine…</source>
        <translation>Verbindung zur Engine wird wiederhergestellt …</translation>
    </message>
    <message>
        <source>Relay for computers that nobody can reach</source>
        <translation>Relais sein für Computer, die niemand erreichen kann</translation>
    </message>
    <message>
        <source>Relaying</source>
        <translation>Relais</translation>
    </message>
    <message>
        <source>Repetition penalty</source>
        <translation>Wiederholungsstrafe</translation>
    </message>
    <message>
        <source>Res&amp;ults</source>
        <translation>Er&amp;gebnisse</translation>
    </message>
    <message>
        <source>Restarting the engine…</source>
        <translation>Die Engine startet neu …</translation>
    </message>
    <message>
        <source>Restore a copy of the identity</source>
        <translation>Eine Kopie der Identität wiederherstellen</translation>
    </message>
    <message>
        <source>Restoring keeps the present key beside the new one, as identity.key.before.</source>
        <translation>Beim Wiederherstellen bleibt der jetzige Schlüssel neben dem neuen, als identity.key.before.</translation>
    </message>
    <message>
        <source>Results</source>
        <translation>Ergebnisse</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Resuming…</source>
        <translation>Wird fortgesetzt …</translation>
    </message>
    <message>
        <source>Retry</source>
        <translation>Wiederholen</translation>
    </message>
    <message>
        <source>Round trip</source>
        <translation>Umlaufzeit</translation>
    </message>
    <message>
        <source>Rows</source>
        <translation>Zeilen</translation>
    </message>
    <message>
        <source>Rows of the batch</source>
        <translation>Zeilen des Stapels</translation>
    </message>
    <message>
        <source>Rows that cannot be asked</source>
        <translation>Zeilen, die nicht verwendbar sind</translation>
    </message>
    <message>
        <source>Running</source>
        <translation>Läuft</translation>
    </message>
    <message>
        <source>Running requests come to their end, then Shoal starts again…</source>
        <translation>Laufende Anfragen werden beendet, dann startet Shoal neu …</translation>
    </message>
    <message>
        <source>S&amp;how it</source>
        <translation>An&amp;zeigen</translation>
    </message>
    <message>
        <source>S&amp;ystem prompt</source>
        <translation>S&amp;ystem-Prompt</translation>
    </message>
    <message>
        <source>Sa&amp;ve results…</source>
        <translation>&amp;Ergebnisse speichern …</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>Sampling</translation>
    </message>
    <message>
        <source>Save the archive</source>
        <translation>Das Archiv speichern</translation>
    </message>
    <message>
        <source>Save the results</source>
        <translation>Die Ergebnisse speichern</translation>
    </message>
    <message>
        <source>Saved as {path}.</source>
        <translation>Gespeichert als {path}.</translation>
    </message>
    <message>
        <source>Search chats</source>
        <translation>Chats durchsuchen</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>Seed</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>Senden</translation>
    </message>
    <message>
        <source>Send the message</source>
        <translation>Die Nachricht senden</translation>
    </message>
    <message>
        <source>Sent</source>
        <translation>Gesendet</translation>
    </message>
    <message>
        <source>Served in all</source>
        <translation>Insgesamt bereitgestellt</translation>
    </message>
    <message>
        <source>Served since the start</source>
        <translation>Seit dem Start bereitgestellt</translation>
    </message>
    <message>
        <source>Served today</source>
        <translation>Heute bereitgestellt</translation>
    </message>
    <message>
        <source>Serving all {count} blocks of {model}</source>
        <translation>Stellt alle {count} Blöcke von {model} bereit</translation>
    </message>
    <message>
        <source>Serving blocks {span} of {model}</source>
        <translation>Stellt die Blöcke {span} von {model} bereit</translation>
    </message>
    <message>
        <source>Serving {model}</source>
        <translation>Stellt {model} bereit</translation>
    </message>
    <message>
        <source>Sessions now</source>
        <translation>Sitzungen jetzt</translation>
    </message>
    <message>
        <source>Setti&amp;ngs</source>
        <translation>&amp;Einstellungen</translation>
    </message>
    <message>
        <source>Setting up the engine</source>
        <translation>Der Rechenteil wird eingerichtet</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Settings of this chat</source>
        <translation>Einstellungen dieses Chats</translation>
    </message>
    <message>
        <source>Sho&amp;w results</source>
        <translation>&amp;Ergebnisse zeigen</translation>
    </message>
    <message>
        <source>Shoal batches</source>
        <translation>Shoal – Stapel</translation>
    </message>
    <message>
        <source>Shoal cannot look for new versions, because this build has no release key: get them where you got this one.</source>
        <translation>Shoal kann nicht nach neuen Versionen sehen, weil dieses Programm keinen Schlüssel der Herausgeber enthält: Hol sie dort, woher du dieses hast.</translation>
    </message>
    <message>
        <source>Shoal cannot serve</source>
        <translation>Shoal kann nichts bereitstellen</translation>
    </message>
    <message>
        <source>Shoal cannot write to {folder} ({reason}). Free space or correct its rights.</source>
        <translation>Shoal kann nicht in {folder} schreiben ({reason}). Schaff Platz oder berichtige die Rechte.</translation>
    </message>
    <message>
        <source>Shoal chat</source>
        <translation>Shoal – Chat</translation>
    </message>
    <message>
        <source>Shoal dashboard</source>
        <translation>Shoal – Dashboard</translation>
    </message>
    <message>
        <source>Shoal measures plain steps first</source>
        <translation>Shoal misst erst Schritte ohne Entwurf</translation>
    </message>
    <message>
        <source>Shoal runs a large language model on several computers at once. Each holds some of its layers, called blocks, and hands its results on to the next. Yours can hold some, too.</source>
        <translation>Shoal lässt ein großes Sprachmodell auf mehreren Computern zugleich laufen. Jeder hält einige seiner Schichten, Blöcke genannt, und reicht seine Ergebnisse an den nächsten weiter. Auch deiner kann welche halten.</translation>
    </message>
    <message>
        <source>Shoal settings</source>
        <translation>Shoal – Einstellungen</translation>
    </message>
    <message>
        <source>Shoal {version} did not start, so this version runs again.</source>
        <translation>Shoal {version} ist nicht gestartet, darum läuft wieder diese Version.</translation>
    </message>
    <message>
        <source>Shoal {version} is fetched and its signature is right. To install it, run this in a terminal, then start Shoal again:</source>
        <translation>Shoal {version} ist geladen, und die Signatur stimmt. Führe zum Installieren dies in einem Terminal aus und starte Shoal dann neu:</translation>
    </message>
    <message>
        <source>Shoal {version} is installed and runs after the next start. If it does not work, this version runs again by itself.</source>
        <translation>Shoal {version} ist installiert und läuft nach dem nächsten Start. Funktioniert es nicht, läuft von selbst wieder diese Version.</translation>
    </message>
    <message>
        <source>Shoal {version} is put beside this version…</source>
        <translation>Shoal {version} wird neben dieser Version eingerichtet …</translation>
    </message>
    <message>
        <source>Shoal {version} is there.</source>
        <translation>Shoal {version} ist da.</translation>
    </message>
    <message>
        <source>Shoal's Linux runs under WSL version 1, which its engine cannot use; start Shoal's setup again, which changes this to version 2.</source>
        <translation>Shoals Linux läuft unter WSL Version 1, die die Engine nicht nutzen kann; starte Shoals Installation noch einmal, die auf Version 2 umstellt.</translation>
    </message>
    <message>
        <source>Shoal's engine needs the Windows Subsystem for Linux (WSL), which is not turned on; start Shoal's setup again, which turns it on if you agree.</source>
        <translation>Shoals Engine braucht das Windows-Subsystem für Linux (WSL), das nicht eingeschaltet ist; starte Shoals Installation noch einmal, die es einschaltet, wenn du zustimmst.</translation>
    </message>
    <message>
        <source>Shoal: setup</source>
        <translation>Shoal: Einrichtung</translation>
    </message>
    <message>
        <source>Short answers, summaries and rewriting, in English.</source>
        <translation>Kurze Antworten, Zusammenfassungen und Umformulierungen, auf Englisch.</translation>
    </message>
    <message>
        <source>Show all</source>
        <translation>Alles zeigen</translation>
    </message>
    <message>
        <source>Show the list of chats</source>
        <translation>Liste der Chats zeigen</translation>
    </message>
    <message>
        <source>Show the list of chats (Ctrl+B)</source>
        <translation>Liste der Chats zeigen (Strg+B)</translation>
    </message>
    <message>
        <source>Show the version after</source>
        <translation>Die Fassung danach zeigen</translation>
    </message>
    <message>
        <source>Show the version before</source>
        <translation>Die Fassung davor zeigen</translation>
    </message>
    <message>
        <source>Show the whole message</source>
        <translation>Die ganze Nachricht zeigen</translation>
    </message>
    <message>
        <source>So many of the {count} blocks fit; the swarm says which it needs most.</source>
        <translation>So viele der {count} Blöcke passen; welche er am dringendsten braucht, sagt der Schwarm.</translation>
    </message>
    <message>
        <source>Some blocks were served by nobody; now all are.</source>
        <translation>Einige Blöcke hielt niemand; jetzt sind alle da.</translation>
    </message>
    <message>
        <source>Some rows cannot be asked</source>
        <translation>Manche Zeilen sind nicht verwendbar</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>Start Shoal when I &amp;log in</source>
        <translation>Shoal beim An&amp;melden starten</translation>
    </message>
    <message>
        <source>Starting the engine…</source>
        <translation>Die Engine startet …</translation>
    </message>
    <message>
        <source>Starting.</source>
        <translation>Es geht los.</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Stand</translation>
    </message>
    <message>
        <source>Step aside for games and full-screen programs</source>
        <translation>Platz machen für Spiele und Vollbildprogramme</translation>
    </message>
    <message>
        <source>Step aside for these programs</source>
        <translation>Platz machen für diese Programme</translation>
    </message>
    <message>
        <source>Step aside when less GPU memory is free than</source>
        <translation>Platz machen, wenn weniger GPU-Speicher frei ist als</translation>
    </message>
    <message>
        <source>Step {n} of 3</source>
        <translation>Schritt {n} von 3</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Stoppen</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>Die Antwort stoppen</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>Gestoppt</translation>
    </message>
    <message>
        <source>Stopping…</source>
        <translation>Wird beendet …</translation>
    </message>
    <message>
        <source>Strangers' computers hold parts of the model, and each on the way of a message can read it.</source>
        <translation>Computer von Fremden halten Teile des Modells; jeder auf dem Weg einer Nachricht kann sie lesen.</translation>
    </message>
    <message>
        <source>Such as http://proxy:3128. Empty: as the system says. What goes between the swarm's computers passes no proxy.</source>
        <translation>Etwa http://proxy:3128. Leer: wie das System es sagt. Was zwischen den Rechnern des Schwarms läuft, geht durch keinen Proxy.</translation>
    </message>
    <message>
        <source>Summarize in one sentence: {text}, with a column's name in braces</source>
        <translation>Fasse in einem Satz zusammen: {text}, mit dem Namen einer Spalte in Klammern</translation>
    </message>
    <message>
        <source>Swarm</source>
        <translation>Schwarm</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>System-Prompt</translation>
    </message>
    <message>
        <source>System prompt and sampling (Ctrl+,)</source>
        <translation>System-Prompt und Sampling (Strg+,)</translation>
    </message>
    <message>
        <source>Table (*.csv)</source>
        <translation>Tabelle (*.csv)</translation>
    </message>
    <message>
        <source>Table (CSV)</source>
        <translation>Tabelle (CSV)</translation>
    </message>
    <message>
        <source>Table with {n} column|Table with {n} columns</source>
        <translation>Tabelle mit {n} Spalte|Tabelle mit {n} Spalten</translation>
    </message>
    <message>
        <source>Tables, texts and lines of JSON (*.csv *.tsv *.txt *.jsonl *.ndjson)</source>
        <translation>Tabellen, Texte und JSON-Zeilen (*.csv *.tsv *.txt *.jsonl *.ndjson)</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>Text follows a closing quote ("); double each quote that is part of the text.</source>
        <translation>Nach einem schließenden Anführungszeichen (") folgt Text; verdopple jedes, das zum Text gehört.</translation>
    </message>
    <message>
        <source>Text, one prompt on each line</source>
        <translation>Text, ein Prompt je Zeile</translation>
    </message>
    <message>
        <source>That is not measured yet.</source>
        <translation>Das ist noch nicht gemessen.</translation>
    </message>
    <message>
        <source>That is over, so Shoal resumes soon.</source>
        <translation>Das ist vorbei; Shoal macht bald weiter.</translation>
    </message>
    <message>
        <source>The Linux that Shoal's engine runs in is gone from WSL; start Shoal's setup again, which puts it back.</source>
        <translation>Das Linux, in dem Shoals Engine läuft, ist nicht mehr in WSL; starte Shoals Installation noch einmal, die es wieder herstellt.</translation>
    </message>
    <message>
        <source>The Windows Subsystem for Linux cannot start, because virtualisation is turned off; turn on VT-x or AMD-V (SVM) in the computer's firmware settings and the Virtual Machine Platform in Windows' features, then start Shoal again.</source>
        <translation>Das Windows-Subsystem für Linux kann nicht starten, weil die Virtualisierung ausgeschaltet ist; schalte VT-x oder AMD-V (SVM) in den Firmware-Einstellungen des Computers und die VM-Plattform in den Windows-Features ein, dann starte Shoal noch einmal.</translation>
    </message>
    <message>
        <source>The Windows Subsystem for Linux does not answer; restart the computer, then start Shoal again.</source>
        <translation>Das Windows-Subsystem für Linux antwortet nicht; starte den Computer neu, dann starte Shoal noch einmal.</translation>
    </message>
    <message>
        <source>The Windows Subsystem for Linux failed and said “{detail}”; restart the computer, and start Shoal's setup again if that does not help.</source>
        <translation>Das Windows-Subsystem für Linux ist gescheitert und sagte „{detail}“; starte den Computer neu, und starte Shoals Installation noch einmal, wenn das nicht hilft.</translation>
    </message>
    <message>
        <source>The Windows Subsystem for Linux has no kernel for version 2; run `wsl --update` in a terminal, then start Shoal's setup again.</source>
        <translation>Dem Windows-Subsystem für Linux fehlt der Kernel für Version 2; führe `wsl --update` in einem Terminal aus, dann starte Shoals Installation noch einmal.</translation>
    </message>
    <message>
        <source>The Windows Subsystem for Linux is installed but works only after a restart; restart the computer (restart, not shut down).</source>
        <translation>Das Windows-Subsystem für Linux ist installiert, läuft aber erst nach einem Neustart; starte den Computer neu (neu starten, nicht herunterfahren).</translation>
    </message>
    <message>
        <source>The compute process crashed; starting again in {seconds} s.</source>
        <translation>Der Rechenprozess ist abgestürzt; neuer Start in {seconds} s.</translation>
    </message>
    <message>
        <source>The connection broke before the answer ended.</source>
        <translation>Die Verbindung brach ab, bevor die Antwort zu Ende war.</translation>
    </message>
    <message>
        <source>The copy cannot be written ({reason}); choose another folder.</source>
        <translation>Die Kopie kann nicht geschrieben werden ({reason}); wähle einen anderen Ordner.</translation>
    </message>
    <message>
        <source>The copy of {peer} is in {file}.</source>
        <translation>Die Kopie von {peer} ist in {file}.</translation>
    </message>
    <message>
        <source>The disk that Shoal's Linux is on is full; free some space, then try again.</source>
        <translation>Der Datenträger, auf dem Shoals Linux liegt, ist voll; schaffe Platz, dann versuche es noch einmal.</translation>
    </message>
    <message>
        <source>The engine answered with an error ({code}).</source>
        <translation>Die Engine hat mit einem Fehler geantwortet ({code}).</translation>
    </message>
    <message>
        <source>The engine could not be set up</source>
        <translation>Der Rechenteil konnte nicht eingerichtet werden</translation>
    </message>
    <message>
        <source>The engine does not answer. It may be restarting; try again in a moment.</source>
        <translation>Die Engine antwortet nicht. Vielleicht startet sie gerade neu; versuch es gleich noch einmal.</translation>
    </message>
    <message>
        <source>The engine does not answer; batches go on when it runs again.</source>
        <translation>Die Engine antwortet nicht; die Stapel gehen weiter, sobald sie wieder läuft.</translation>
    </message>
    <message>
        <source>The engine does not answer; wait until it runs again.</source>
        <translation>Die Engine antwortet nicht; warte, bis sie wieder läuft.</translation>
    </message>
    <message>
        <source>The engine does not answer; what it wrote last is in the folder.</source>
        <translation>Die Engine antwortet nicht; was sie zuletzt geschrieben hat, steht im Ordner.</translation>
    </message>
    <message>
        <source>The engine failed (exit code {code}).</source>
        <translation>Die Engine ist fehlgeschlagen (Exitcode {code}).</translation>
    </message>
    <message>
        <source>The engine is not ready yet.</source>
        <translation>Die Engine ist noch nicht bereit.</translation>
    </message>
    <message>
        <source>The engine is not ready yet. Try again in a moment.</source>
        <translation>Die Engine ist noch nicht bereit. Versuch es gleich noch einmal.</translation>
    </message>
    <message>
        <source>The engine is not running</source>
        <translation>Die Engine läuft nicht</translation>
    </message>
    <message>
        <source>The engine sent an answer that cannot be read.</source>
        <translation>Die Antwort der Engine ist nicht lesbar.</translation>
    </message>
    <message>
        <source>The engine sent an answer that cannot be read; it may be newer than this window. Start Shoal again.</source>
        <translation>Die Antwort der Engine ist nicht lesbar; vielleicht ist sie neuer als dieses Fenster. Starte Shoal neu.</translation>
    </message>
    <message>
        <source>The engine that was running has ended.</source>
        <translation>Die Engine, die lief, hat sich beendet.</translation>
    </message>
    <message>
        <source>The engine was asked to end.</source>
        <translation>Die Engine wurde gebeten, sich zu beenden.</translation>
    </message>
    <message>
        <source>The engine was ended by the system.</source>
        <translation>Das System hat die Engine beendet.</translation>
    </message>
    <message>
        <source>The engine's access token cannot be read.</source>
        <translation>Das Zugriffstoken der Engine ist nicht lesbar.</translation>
    </message>
    <message>
        <source>The engine's log</source>
        <translation>Das Protokoll der Engine</translation>
    </message>
    <message>
        <source>The entry for the login cannot be changed ({reason}).</source>
        <translation>Der Eintrag für die Anmeldung kann nicht geändert werden ({reason}).</translation>
    </message>
    <message>
        <source>The extension &lt;a href="{url}"&gt;AppIndicator and KStatusNotifierItem Support&lt;/a&gt; gives it a place in GNOME's top bar.</source>
        <translation>Die Erweiterung &lt;a href="{url}"&gt;AppIndicator and KStatusNotifierItem Support&lt;/a&gt; gibt ihm einen Platz in der oberen Leiste von GNOME.</translation>
    </message>
    <message>
        <source>The failed rows of “{name}” are asked again.</source>
        <translation>Die fehlgeschlagenen Zeilen von „{name}“ werden wiederholt.</translation>
    </message>
    <message>
        <source>The fastest pipeline of all {nodes} nodes covers every block.</source>
        <translation>Die schnellste Pipeline aller {nodes} Knoten enthält jeden Block.</translation>
    </message>
    <message>
        <source>The fastest pipeline of all {nodes} nodes is {percent}% faster than what there is.</source>
        <translation>Die schnellste Pipeline aller {nodes} Knoten ist {percent} % schneller als die jetzige.</translation>
    </message>
    <message>
        <source>The first line names the column {column} twice; give each column its own name.</source>
        <translation>Die erste Zeile nennt die Spalte {column} zweimal; gib jeder Spalte ihren eigenen Namen.</translation>
    </message>
    <message>
        <source>The first row, as it will be asked.|The first {n} rows, as they will be asked.</source>
        <translation>Die erste Zeile, so wie sie an das Modell geht.|Die ersten {n} Zeilen, so wie sie an das Modell gehen.</translation>
    </message>
    <message>
        <source>The first rows</source>
        <translation>Die ersten Zeilen</translation>
    </message>
    <message>
        <source>The folder of a smaller model of the same family, or of one that shoal draft train has made. Empty: one that is at hand.</source>
        <translation>Der Ordner eines kleineren Modells derselben Familie oder eines, das shoal draft train gemacht hat. Leer: eines, das zur Hand ist.</translation>
    </message>
    <message>
        <source>The input has more than {n} rows; split it into several.</source>
        <translation>Die Eingabe hat mehr als {n} Zeilen; teile sie in mehrere auf.</translation>
    </message>
    <message>
        <source>The input has no rows; write one prompt or request on each line.</source>
        <translation>Die Eingabe hat keine Zeilen; schreib in jede Zeile einen Prompt oder eine Anfrage.</translation>
    </message>
    <message>
        <source>The input is not text (it holds bytes that no text has); save it as JSONL, CSV or plain text first.</source>
        <translation>Die Eingabe ist kein Text (sie enthält Bytes, die kein Text hat); speichere sie zuerst als JSONL, CSV oder reinen Text.</translation>
    </message>
    <message>
        <source>The least served block becomes {percent}% faster by one move.</source>
        <translation>Der am schlechtesten versorgte Block wird durch einen Wechsel um {percent} % schneller.</translation>
    </message>
    <message>
        <source>The least served block becomes {percent}% faster by {moves} moves.</source>
        <translation>Der am schlechtesten versorgte Block wird durch {moves} Wechsel um {percent} % schneller.</translation>
    </message>
    <message>
        <source>The line has no request: give it a body with messages, or give a template for its other fields.</source>
        <translation>Die Zeile enthält keine Anfrage: Gib ihr ein body mit messages, oder gib eine Vorlage für ihre anderen Felder an.</translation>
    </message>
    <message>
        <source>The line holds bytes that are not text in this file's encoding; save it as UTF-8.</source>
        <translation>Die Zeile enthält Bytes, die in der Kodierung dieser Datei kein Text sind; speichere sie als UTF-8.</translation>
    </message>
    <message>
        <source>The line is longer than {n} million characters; split it, or leave it out.</source>
        <translation>Die Zeile ist länger als {n} Millionen Zeichen; teile sie auf, oder lass sie weg.</translation>
    </message>
    <message>
        <source>The line is not valid JSON: {reason} at character {place}.</source>
        <translation>Die Zeile ist kein gültiges JSON: {reason} bei Zeichen {place}.</translation>
    </message>
    <message>
        <source>The line must be a JSON object, {{…}}, or a prompt in quotes: "…".</source>
        <translation>Die Zeile muss ein JSON-Objekt sein, {{…}}, oder ein Prompt in Anführungszeichen: "…".</translation>
    </message>
    <message>
        <source>The list of models comes when the engine is ready.</source>
        <translation>Die Liste der Modelle kommt, sobald die Engine bereit ist.</translation>
    </message>
    <message>
        <source>The log</source>
        <translation>Das Protokoll</translation>
    </message>
    <message>
        <source>The log before</source>
        <translation>Das Protokoll davor</translation>
    </message>
    <message>
        <source>The log is empty.</source>
        <translation>Das Protokoll ist leer.</translation>
    </message>
    <message>
        <source>The model is downloaded when you begin, if it is not on this computer.</source>
        <translation>Das Modell wird heruntergeladen, wenn du beginnst, falls es nicht auf diesem Computer ist.</translation>
    </message>
    <message>
        <source>The model runs on this computer alone: your messages do not leave it.</source>
        <translation>Das Modell läuft allein auf diesem Computer: Deine Nachrichten verlassen ihn nicht.</translation>
    </message>
    <message>
        <source>The newest lines, without names, addresses and keys. What you ask is never logged.</source>
        <translation>Die neuesten Zeilen, ohne Namen, Adressen und Schlüssel. Was du fragst, wird nie protokolliert.</translation>
    </message>
    <message>
        <source>The newest lines; the archive holds all of them.</source>
        <translation>Die neuesten Zeilen; das Archiv enthält alle.</translation>
    </message>
    <message>
        <source>The numbers come as soon as the engine answers.</source>
        <translation>Die Zahlen kommen, sobald die Engine antwortet.</translation>
    </message>
    <message>
        <source>The part that computes is fetched once, in the build that fits this computer. Nothing is installed outside of the folder below.</source>
        <translation>Der Teil, der rechnet, wird einmal geholt, passend zu diesem Computer. Außerhalb des Ordners unten wird nichts installiert.</translation>
    </message>
    <message>
        <source>The picture comes as soon as it is known who holds which blocks.</source>
        <translation>Das Bild kommt, sobald bekannt ist, wer welche Blöcke hält.</translation>
    </message>
    <message>
        <source>The pipeline now</source>
        <translation>Die Pipeline jetzt</translation>
    </message>
    <message>
        <source>The prompt is empty; fill in the row, or leave it out.</source>
        <translation>Der Prompt ist leer; fülle die Zeile aus, oder lass sie weg.</translation>
    </message>
    <message>
        <source>The row has no value for {column} of the template; add it, or leave the row out.</source>
        <translation>Die Zeile hat keinen Wert für {column} der Vorlage; ergänze ihn, oder lass die Zeile weg.</translation>
    </message>
    <message>
        <source>The row has no {column}; add one, or give a template.</source>
        <translation>Die Zeile hat kein {column}; ergänze eines, oder gib eine Vorlage an.</translation>
    </message>
    <message>
        <source>The row has {values} values, but the first line names {columns} columns; put quotes around a value that holds the delimiter, or fill in what is missing.</source>
        <translation>Die Zeile hat {values} Werte, aber die erste Zeile nennt {columns} Spalten; setze einen Wert, der das Trennzeichen enthält, in Anführungszeichen, oder ergänze, was fehlt.</translation>
    </message>
    <message>
        <source>The settings</source>
        <translation>Die Einstellungen</translation>
    </message>
    <message>
        <source>The settings fix them.</source>
        <translation>Die Einstellungen legen sie fest.</translation>
    </message>
    <message>
        <source>The setup cannot be copied to {folder} ({reason}); free some space there and try again.</source>
        <translation>Das Setup lässt sich nicht nach {folder} kopieren ({reason}); schaffe dort Platz und versuche es noch einmal.</translation>
    </message>
    <message>
        <source>The setup of Shoal {version} is fetched and its signature is right. Start it to go over to the new version.</source>
        <translation>Das Setup von Shoal {version} ist geladen, und die Signatur stimmt. Starte es, um zur neuen Version zu wechseln.</translation>
    </message>
    <message>
        <source>The setup was not started, because it is no longer the file that was signed; quit Shoal, start it again and install the new version once more, which fetches it anew.</source>
        <translation>Das Setup wurde nicht gestartet, weil es nicht mehr die Datei ist, die unterschrieben wurde; beende Shoal, starte es wieder und installiere die neue Version noch einmal, dann wird sie neu geholt.</translation>
    </message>
    <message>
        <source>The swarm checks several of them at a time. Answers stay the same.</source>
        <translation>Der Schwarm prüft mehrere davon auf einmal. Antworten bleiben dieselben.</translation>
    </message>
    <message>
        <source>The swarm needs blocks {span} most.</source>
        <translation>Der Schwarm braucht die Blöcke {span} am dringendsten.</translation>
    </message>
    <message>
        <source>The system and versions</source>
        <translation>Das System und die Versionen</translation>
    </message>
    <message>
        <source>The table is empty; its first line must name the columns.</source>
        <translation>Die Tabelle ist leer; ihre erste Zeile muss die Spalten nennen.</translation>
    </message>
    <message>
        <source>The template asks for {asked}, but no column has this name; write one of those that there are: {columns}.</source>
        <translation>Die Vorlage fragt nach {asked}, aber keine Spalte heißt so; schreib eine von denen, die es gibt: {columns}.</translation>
    </message>
    <message>
        <source>The template asks for {asked}, but no column has this name; write {column} if you mean that column.</source>
        <translation>Die Vorlage fragt nach {asked}, aber keine Spalte heißt so; schreib {column}, wenn du diese Spalte meinst.</translation>
    </message>
    <message>
        <source>The token is the key to this engine: give it to no one, and to no website.</source>
        <translation>Das Token ist der Schlüssel zu dieser Engine: Gib es niemandem und keiner Website.</translation>
    </message>
    <message>
        <source>The whole model fits.</source>
        <translation>Das ganze Modell passt.</translation>
    </message>
    <message>
        <source>There are no batches yet.</source>
        <translation>Es gibt noch keine Stapel.</translation>
    </message>
    <message>
        <source>There is no newer version.</source>
        <translation>Es gibt keine neuere Version.</translation>
    </message>
    <message>
        <source>There is no pipeline to draw now: {headline}.</source>
        <translation>Gerade gibt es keine Pipeline zu zeichnen: {headline}.</translation>
    </message>
    <message>
        <source>There is nothing to show while the engine does not run.</source>
        <translation>Solange die Engine nicht läuft, gibt es nichts zu zeigen.</translation>
    </message>
    <message>
        <source>These hold when the engine starts next: {names}.</source>
        <translation>Das gilt ab dem nächsten Start der Engine: {names}.</translation>
    </message>
    <message>
        <source>Thinks before it answers; code, mathematics, many languages.</source>
        <translation>Denkt, bevor es antwortet; Code, Mathematik, viele Sprachen.</translation>
    </message>
    <message>
        <source>This app</source>
        <translation>Diese App</translation>
    </message>
    <message>
        <source>This comes as soon as the engine answers.</source>
        <translation>Das kommt, sobald die Engine antwortet.</translation>
    </message>
    <message>
        <source>This computer</source>
        <translation>Dieser Computer</translation>
    </message>
    <message>
        <source>This computer has room for it.|The {n} computers that are known have room for it.</source>
        <translation>Dieser Computer hat Platz dafür.|Die {n} bekannten Computer haben Platz dafür.</translation>
    </message>
    <message>
        <source>This computer's clock is {seconds} s ahead of the swarm's, so others ignore it; switch on automatic time in the system settings.</source>
        <translation>Die Uhr dieses Computers geht {seconds} s vor gegenüber dem Schwarm, darum beachten andere ihn nicht; schalte in den Systemeinstellungen die automatische Uhrzeit ein.</translation>
    </message>
    <message>
        <source>This computer's clock is {seconds} s behind the swarm's, so others ignore it; switch on automatic time in the system settings.</source>
        <translation>Die Uhr dieses Computers geht {seconds} s nach gegenüber dem Schwarm, darum beachten andere ihn nicht; schalte in den Systemeinstellungen die automatische Uhrzeit ein.</translation>
    </message>
    <message>
        <source>This connection is metered</source>
        <translation>Diese Verbindung ist getaktet</translation>
    </message>
    <message>
        <source>This desktop shows no tray, so Shoal lives in this window and ends when it is closed.</source>
        <translation>Dieser Desktop zeigt keinen Infobereich; darum lebt Shoal in diesem Fenster und endet, wenn es geschlossen wird.</translation>
    </message>
    <message>
        <source>This engine holds no blocks; it only uses the swarm.</source>
        <translation>Diese Engine hält keine Blöcke; sie nutzt den Schwarm nur.</translation>
    </message>
    <message>
        <source>This holds when Shoal is started again.</source>
        <translation>Das gilt, sobald Shoal neu gestartet wird.</translation>
    </message>
    <message>
        <source>This is Shoal {version}</source>
        <translation>Dies ist Shoal {version}</translation>
    </message>
    <message>
        <source>This node is in no swarm, so it holds what fits.</source>
        <translation>Dieser Knoten ist in keinem Schwarm; er hält, was passt.</translation>
    </message>
    <message>
        <source>This node is who the copy was.</source>
        <translation>Dieser Knoten ist jetzt der aus der Kopie.</translation>
    </message>
    <message>
        <source>This one runs from a folder of yours: bring it up to date as you made it.</source>
        <translation>Dieses läuft aus einem Ordner von dir: Aktualisiere ihn so, wie du ihn angelegt hast.</translation>
    </message>
    <message>
        <source>Time left</source>
        <translation>Restzeit</translation>
    </message>
    <message>
        <source>To apply this, the stage starts again, which takes seconds.</source>
        <translation>Dafür startet die Stufe neu, was einige Sekunden dauert.</translation>
    </message>
    <message>
        <source>To download</source>
        <translation>Herunterzuladen</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Tokens served</source>
        <translation>Token bereitgestellt</translation>
    </message>
    <message>
        <source>Tokens used</source>
        <translation>Token genutzt</translation>
    </message>
    <message>
        <source>Top k</source>
        <translation>Top-k</translation>
    </message>
    <message>
        <source>Top p</source>
        <translation>Top-p</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Erneut versuchen</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
    <message>
        <source>Upload</source>
        <translation>Upload</translation>
    </message>
    <message>
        <source>Use</source>
        <translation>Nehmen</translation>
    </message>
    <message>
        <source>Use {name}</source>
        <translation>{name} nehmen</translation>
    </message>
    <message>
        <source>Used in all</source>
        <translation>Insgesamt genutzt</translation>
    </message>
    <message>
        <source>Used since the start</source>
        <translation>Seit dem Start genutzt</translation>
    </message>
    <message>
        <source>Used today</source>
        <translation>Heute genutzt</translation>
    </message>
    <message>
        <source>VRAM</source>
        <translation>VRAM</translation>
    </message>
    <message>
        <source>Version {place}</source>
        <translation>Fassung {place}</translation>
    </message>
    <message>
        <source>WSL has a distribution called Shoal already, which this setup did not make; rename or remove it, then start Shoal's setup again.</source>
        <translation>WSL hat schon eine Distribution namens Shoal, die diese Installation nicht angelegt hat; benenne sie um oder entferne sie, dann starte Shoals Installation noch einmal.</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>Wartet</translation>
    </message>
    <message>
        <source>Waiting for its turn</source>
        <translation>Wartet, bis er an der Reihe ist</translation>
    </message>
    <message>
        <source>Waiting for the first token…</source>
        <translation>Warten auf das erste Token …</translation>
    </message>
    <message>
        <source>Way</source>
        <translation>Weg</translation>
    </message>
    <message>
        <source>Welcome to Shoal</source>
        <translation>Willkommen bei Shoal</translation>
    </message>
    <message>
        <source>What I hold</source>
        <translation>Was ich halte</translation>
    </message>
    <message>
        <source>What Shoal is</source>
        <translation>Was Shoal ist</translation>
    </message>
    <message>
        <source>What Shoal may take of this computer at most.</source>
        <translation>Was Shoal höchstens von diesem Computer nehmen darf.</translation>
    </message>
    <message>
        <source>What is asked</source>
        <translation>Anfrage</translation>
    </message>
    <message>
        <source>What is not ticked is as the model's makers recommend.</source>
        <translation>Was nicht angehakt ist, bleibt, wie es die Entwickler des Modells empfehlen.</translation>
    </message>
    <message>
        <source>What is wrong with the input</source>
        <translation>Was mit der Eingabe nicht stimmt</translation>
    </message>
    <message>
        <source>What opens invites cannot be changed ({reason}).</source>
        <translation>Was Einladungen öffnet, lässt sich nicht ändern ({reason}).</translation>
    </message>
    <message>
        <source>What others can see: every computer of a chain can read your text and the answer. Use a private swarm, or this computer alone, for anything sensitive.</source>
        <translation>Was andere sehen können: Jeder Computer einer Kette kann deinen Text und die Antwort lesen. Nimm für alles Vertrauliche einen privaten Schwarm oder nur diesen Computer.</translation>
    </message>
    <message>
        <source>What the chosen file holds</source>
        <translation>Was die gewählte Datei enthält</translation>
    </message>
    <message>
        <source>What the engine says of its {name}</source>
        <translation>Was die Engine dazu sagt: {name}</translation>
    </message>
    <message>
        <source>What was downloaded is kept, so trying again goes on from there.</source>
        <translation>Was heruntergeladen wurde, bleibt; ein neuer Versuch macht dort weiter.</translation>
    </message>
    <message>
        <source>What was measured of this machine</source>
        <translation>Was an diesem Rechner gemessen wurde</translation>
    </message>
    <message>
        <source>What would you like to know?</source>
        <translation>Was möchtest du wissen?</translation>
    </message>
    <message>
        <source>What your computer would give</source>
        <translation>Was dein Computer geben würde</translation>
    </message>
    <message>
        <source>When Shoal gives to its swarm, and when it steps aside.</source>
        <translation>Wann Shoal seinem Schwarm gibt und wann es Platz macht.</translation>
    </message>
    <message>
        <source>When something is wrong, this archive helps others to find out why. It holds these files and nothing else: no chats, and without names, addresses, keys and paths of yours. It stays on this computer until you give it to somebody.</source>
        <translation>Wenn etwas nicht stimmt, hilft dieses Archiv anderen herauszufinden, warum. Es enthält diese Dateien und sonst nichts: keine Chats, und ohne deine Namen, Adressen, Schlüssel und Pfade. Es bleibt auf diesem Computer, bis du es jemandem gibst.</translation>
    </message>
    <message>
        <source>Who can reach me</source>
        <translation>Wer mich erreicht</translation>
    </message>
    <message>
        <source>Who holds what</source>
        <translation>Wer was hält</translation>
    </message>
    <message>
        <source>Why these</source>
        <translation>Warum diese</translation>
    </message>
    <message>
        <source>Windows did not start {file}; start it yourself.</source>
        <translation>Windows hat {file} nicht gestartet; starte es selbst.</translation>
    </message>
    <message>
        <source>With this node, the fastest pipeline has blocks {span} here.</source>
        <translation>Mit diesem Knoten hat die schnellste Pipeline hier die Blöcke {span}.</translation>
    </message>
    <message>
        <source>Words in titles and messages (Ctrl+K)</source>
        <translation>Wörter in Titeln und Nachrichten (Strg+K)</translation>
    </message>
    <message>
        <source>Writing {model}</source>
        <translation>{model} wird geschrieben</translation>
    </message>
    <message>
        <source>Yielding because other programs need the GPU's memory.</source>
        <translation>Macht Platz, weil andere Programme den Speicher der GPU brauchen.</translation>
    </message>
    <message>
        <source>Yielding because the computer runs on its battery.</source>
        <translation>Macht Platz, weil der Computer im Akkubetrieb läuft.</translation>
    </message>
    <message>
        <source>Yielding because the connection costs by the byte.</source>
        <translation>Macht Platz, weil die Verbindung nach Verbrauch kostet.</translation>
    </message>
    <message>
        <source>Yielding to a game that has asked for GameMode.</source>
        <translation>Macht Platz für ein Spiel, das um den GameMode gebeten hat.</translation>
    </message>
    <message>
        <source>Yielding to a program, which fills the screen.</source>
        <translation>Macht Platz für ein Programm, das den Bildschirm füllt.</translation>
    </message>
    <message>
        <source>Yielding to you for now</source>
        <translation>Macht dir gerade Platz</translation>
    </message>
    <message>
        <source>Yielding to {program}, which fills the screen.</source>
        <translation>Macht Platz für {program}, das den Bildschirm füllt.</translation>
    </message>
    <message>
        <source>Yielding to {program}, which is running.</source>
        <translation>Macht Platz für {program}, das gerade läuft.</translation>
    </message>
    <message>
        <source>Yielding while you use the computer.</source>
        <translation>Macht Platz, solange du den Computer benutzt.</translation>
    </message>
    <message>
        <source>Yielding {end}</source>
        <translation>Macht Platz {end}</translation>
    </message>
    <message>
        <source>You</source>
        <translation>Du</translation>
    </message>
    <message>
        <source>You are a helpful assistant.</source>
        <translation>Du bist ein hilfsbereiter Assistent.</translation>
    </message>
    <message>
        <source>You are writing an earlier message anew; the old one is kept.</source>
        <translation>Du schreibst eine frühere Nachricht neu; die alte bleibt erhalten.</translation>
    </message>
    <message>
        <source>You can type now and send later</source>
        <translation>Du kannst jetzt schreiben und später senden</translation>
    </message>
    <message>
        <source>You would hold {blocks}, {memory}</source>
        <translation>Du würdest {blocks} halten, {memory}</translation>
    </message>
    <message>
        <source>You would hold {blocks}, {memory}, {line}</source>
        <translation>Du würdest {blocks} halten, {memory}, {line}</translation>
    </message>
    <message>
        <source>Your conversations will be listed here.</source>
        <translation>Hier stehen später deine Unterhaltungen.</translation>
    </message>
    <message>
        <source>Your message</source>
        <translation>Deine Nachricht</translation>
    </message>
    <message>
        <source>Your message travels through the computers that hold the model. They must read it to answer, so do not write secrets here.</source>
        <translation>Deine Nachricht reist durch die Computer, die das Modell halten. Um zu antworten, müssen sie sie lesen; schreib hier also keine Geheimnisse.</translation>
    </message>
    <message>
        <source>Your messages do not leave this computer.</source>
        <translation>Deine Nachrichten verlassen diesen Computer nicht.</translation>
    </message>
    <message>
        <source>Your own work comes first. Shoal steps aside for games and full-screen programs, stays within the limits you set, and pauses whenever you say so.</source>
        <translation>Deine eigene Arbeit geht vor. Shoal macht Platz für Spiele und Vollbildprogramme, bleibt in den Grenzen, die du setzt, und pausiert, wann immer du es sagst.</translation>
    </message>
    <message>
        <source>Your work first</source>
        <translation>Deine Arbeit zuerst</translation>
    </message>
    <message>
        <source>a free one each time</source>
        <translation>jedes Mal ein freier</translation>
    </message>
    <message>
        <source>about {size}</source>
        <translation>etwa {size}</translation>
    </message>
    <message>
        <source>about {time}</source>
        <translation>etwa {time}</translation>
    </message>
    <message>
        <source>all {count} blocks of {model}</source>
        <translation>alle {count} Blöcke von {model}</translation>
    </message>
    <message>
        <source>and {n} more</source>
        <translation>und {n} mehr</translation>
    </message>
    <message>
        <source>as many as fit</source>
        <translation>so viele, wie passen</translation>
    </message>
    <message>
        <source>as much as fits</source>
        <translation>so viel, wie passt</translation>
    </message>
    <message>
        <source>as the desktop</source>
        <translation>wie der Desktop</translation>
    </message>
    <message>
        <source>as the system</source>
        <translation>wie das System</translation>
    </message>
    <message>
        <source>as the system says</source>
        <translation>wie das System sagt</translation>
    </message>
    <message>
        <source>at most {size}</source>
        <translation>höchstens {size}</translation>
    </message>
    <message>
        <source>blocks {span} of {model}</source>
        <translation>die Blöcke {span} von {model}</translation>
    </message>
    <message>
        <source>chosen by Shoal</source>
        <translation>wählt Shoal</translation>
    </message>
    <message>
        <source>context of {n} tokens</source>
        <translation>Kontext von {n} Token</translation>
    </message>
    <message>
        <source>custom_id {name} was used in line {line} already; give each row its own.</source>
        <translation>custom_id {name} kam schon in Zeile {line} vor; gib jeder Zeile ihre eigene.</translation>
    </message>
    <message>
        <source>dark</source>
        <translation>dunkel</translation>
    </message>
    <message>
        <source>direct</source>
        <translation>direkt</translation>
    </message>
    <message>
        <source>direct, through both routers</source>
        <translation>direkt, durch beide Router</translation>
    </message>
    <message>
        <source>do not wait for that</source>
        <translation>nicht darauf warten</translation>
    </message>
    <message>
        <source>down</source>
        <translation>herein</translation>
    </message>
    <message>
        <source>drafts did not pay when they were tried</source>
        <translation>Entwürfe haben sich bei Versuchen nicht gelohnt</translation>
    </message>
    <message>
        <source>drafts save time</source>
        <translation>Entwürfe sparen Zeit</translation>
    </message>
    <message>
        <source>drafts take longer than they save</source>
        <translation>Entwürfe dauern länger, als sie sparen</translation>
    </message>
    <message>
        <source>en</source>
        <translation>de</translation>
    </message>
    <message>
        <source>everyone in the swarm, directly</source>
        <translation>alle im Schwarm, direkt</translation>
    </message>
    <message>
        <source>everyone, through {relays}. Answers are quicker if your router forwards a port to this computer.</source>
        <translation>alle, über {relays}. Antworten kommen schneller, wenn dein Router einen Port an diesen Computer weiterleitet.</translation>
    </message>
    <message>
        <source>its input cannot be used.</source>
        <translation>seine Eingabe ist nicht brauchbar.</translation>
    </message>
    <message>
        <source>light</source>
        <translation>hell</translation>
    </message>
    <message>
        <source>never</source>
        <translation>nie</translation>
    </message>
    <message>
        <source>no</source>
        <translation>nein</translation>
    </message>
    <message>
        <source>no draft: {reason}</source>
        <translation>kein Entwurf: {reason}</translation>
    </message>
    <message>
        <source>no limit</source>
        <translation>unbegrenzt</translation>
    </message>
    <message>
        <source>no limit down</source>
        <translation>herein unbegrenzt</translation>
    </message>
    <message>
        <source>no limit up</source>
        <translation>hinaus unbegrenzt</translation>
    </message>
    <message>
        <source>nobody: no connections come in and no relay is free, so this computer can use the swarm but not serve it. Forward a port of your router to it.</source>
        <translation>niemand: Es kommen keine Verbindungen an und kein Relais ist frei. Dieser Computer kann den Schwarm also nutzen, ihm aber nichts bereitstellen. Leite in deinem Router einen Port an ihn weiter.</translation>
    </message>
    <message>
        <source>none now</source>
        <translation>gerade keine</translation>
    </message>
    <message>
        <source>none: solo on this computer</source>
        <translation>keiner: allein auf diesem Computer</translation>
    </message>
    <message>
        <source>none: this computer works alone, nobody connects to it</source>
        <translation>keiner: Dieser Computer arbeitet allein, niemand verbindet sich mit ihm</translation>
    </message>
    <message>
        <source>not known yet</source>
        <translation>noch nicht bekannt</translation>
    </message>
    <message>
        <source>not measured</source>
        <translation>nicht gemessen</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>nichts</translation>
    </message>
    <message>
        <source>nothing measured</source>
        <translation>nichts gemessen</translation>
    </message>
    <message>
        <source>nothing now</source>
        <translation>gerade nichts</translation>
    </message>
    <message>
        <source>on this computer</source>
        <translation>auf diesem Computer</translation>
    </message>
    <message>
        <source>one for each core</source>
        <translation>einer je Kern</translation>
    </message>
    <message>
        <source>private</source>
        <translation>privat</translation>
    </message>
    <message>
        <source>programs on this computer alone</source>
        <translation>nur Programme auf diesem Computer</translation>
    </message>
    <message>
        <source>public</source>
        <translation>öffentlich</translation>
    </message>
    <message>
        <source>separated by {sign}</source>
        <translation>getrennt durch {sign}</translation>
    </message>
    <message>
        <source>served</source>
        <translation>geliefert</translation>
    </message>
    <message>
        <source>slowest</source>
        <translation>Engpass</translation>
    </message>
    <message>
        <source>tabs</source>
        <translation>Tabulatoren</translation>
    </message>
    <message>
        <source>text</source>
        <translation>Text</translation>
    </message>
    <message>
        <source>the CPU, because the NVIDIA card has no working driver ({driver} or newer is needed)</source>
        <translation>dem Prozessor, weil die NVIDIA-Karte keinen funktionierenden Treiber hat (nötig ist {driver} oder neuer)</translation>
    </message>
    <message>
        <source>the CPU, because the NVIDIA card is too old</source>
        <translation>dem Prozessor, weil die NVIDIA-Karte zu alt ist</translation>
    </message>
    <message>
        <source>the CPU, because the NVIDIA driver is too old ({driver} or newer is needed)</source>
        <translation>dem Prozessor, weil der NVIDIA-Treiber zu alt ist (nötig ist {driver} oder neuer)</translation>
    </message>
    <message>
        <source>the CPU, because there is no NVIDIA card</source>
        <translation>dem Prozessor, weil keine NVIDIA-Karte da ist</translation>
    </message>
    <message>
        <source>the NVIDIA card</source>
        <translation>der NVIDIA-Karte</translation>
    </message>
    <message>
        <source>the blocks of this computer</source>
        <translation>das Rechnen auf diesem Computer</translation>
    </message>
    <message>
        <source>the blocks of {node}</source>
        <translation>das Rechnen auf {node}</translation>
    </message>
    <message>
        <source>the model</source>
        <translation>das Modell</translation>
    </message>
    <message>
        <source>the next token</source>
        <translation>das nächste Token</translation>
    </message>
    <message>
        <source>the processor</source>
        <translation>der Prozessor</translation>
    </message>
    <message>
        <source>the way from this computer to {node}</source>
        <translation>der Weg von diesem Computer zu {node}</translation>
    </message>
    <message>
        <source>the way from {node} to this computer</source>
        <translation>der Weg von {node} zu diesem Computer</translation>
    </message>
    <message>
        <source>the way from {node} to {next}</source>
        <translation>der Weg von {node} zu {next}</translation>
    </message>
    <message>
        <source>there is nothing to draft with</source>
        <translation>es gibt nichts, womit entworfen werden kann</translation>
    </message>
    <message>
        <source>this computer</source>
        <translation>dieser Computer</translation>
    </message>
    <message>
        <source>through a relay</source>
        <translation>über ein Relais</translation>
    </message>
    <message>
        <source>through …{relay}</source>
        <translation>über …{relay}</translation>
    </message>
    <message>
        <source>tomorrow {time}</source>
        <translation>morgen {time}</translation>
    </message>
    <message>
        <source>too few drafted tokens are right</source>
        <translation>zu wenige entworfene Token stimmen</translation>
    </message>
    <message>
        <source>until you resume</source>
        <translation>bis auf Weiteres</translation>
    </message>
    <message>
        <source>until {moment} ({left} left)</source>
        <translation>bis {moment} (noch {left})</translation>
    </message>
    <message>
        <source>up</source>
        <translation>hinaus</translation>
    </message>
    <message>
        <source>up to {rate} Mbit/s down</source>
        <translation>bis {rate} Mbit/s herein</translation>
    </message>
    <message>
        <source>up to {rate} Mbit/s up</source>
        <translation>bis {rate} Mbit/s hinaus</translation>
    </message>
    <message>
        <source>used</source>
        <translation>genutzt</translation>
    </message>
    <message>
        <source>what its driver allows</source>
        <translation>was ihr Treiber erlaubt</translation>
    </message>
    <message>
        <source>where that saves time</source>
        <translation>wo es Zeit spart</translation>
    </message>
    <message>
        <source>without the first message|without the first {n} messages</source>
        <translation>ohne die erste Nachricht|ohne die ersten {n} Nachrichten</translation>
    </message>
    <message>
        <source>yes</source>
        <translation>ja</translation>
    </message>
    <message>
        <source>yes, for nodes that accept no connections themselves</source>
        <translation>ja, für Knoten, die selbst keine Verbindungen annehmen</translation>
    </message>
    <message>
        <source>yesterday</source>
        <translation>gestern</translation>
    </message>
    <message>
        <source>{day} {month}</source>
        <translation>{day}. {month}</translation>
    </message>
    <message>
        <source>{device}, {free} of {total} free</source>
        <translation>{device}, {free} von {total} frei</translation>
    </message>
    <message>
        <source>{done} of {total} answered</source>
        <translation>{done} von {total} beantwortet</translation>
    </message>
    <message>
        <source>{done}, {failed}</source>
        <translation>{done}, {failed}</translation>
    </message>
    <message>
        <source>{file} cannot be read as a copy.</source>
        <translation>{file} ist nicht als Kopie lesbar.</translation>
    </message>
    <message>
        <source>{file} holds no invite: it must begin with shoal://.</source>
        <translation>{file} enthält keine Einladung: Sie muss mit shoal:// beginnen.</translation>
    </message>
    <message>
        <source>{folder}, {free} free</source>
        <translation>{folder}, {free} frei</translation>
    </message>
    <message>
        <source>{held} of the {count} blocks of {model}</source>
        <translation>{held} der {count} Blöcke von {model}</translation>
    </message>
    <message>
        <source>{model} (runs now)</source>
        <translation>{model} (läuft gerade)</translation>
    </message>
    <message>
        <source>{model} is not on this computer yet; how much of it fits shows later.</source>
        <translation>{model} ist noch nicht auf diesem Computer; wie viel davon passt, zeigt sich später.</translation>
    </message>
    <message>
        <source>{model}: choose another</source>
        <translation>{model}: ein anderes wählen</translation>
    </message>
    <message>
        <source>{name} cannot be read ({reason}).</source>
        <translation>{name} kann nicht gelesen werden ({reason}).</translation>
    </message>
    <message>
        <source>{name} has more than {limit}; attach the part that matters.</source>
        <translation>{name} hat mehr als {limit}; hänge den Teil an, auf den es ankommt.</translation>
    </message>
    <message>
        <source>{name} is not a text file; the model reads only text.</source>
        <translation>{name} ist keine Textdatei; das Modell liest nur Text.</translation>
    </message>
    <message>
        <source>{needed} of {free} that are free</source>
        <translation>{needed} von {free}, die frei sind</translation>
    </message>
    <message>
        <source>{n} B</source>
        <translation>{n} B</translation>
    </message>
    <message>
        <source>{n} GB</source>
        <translation>{n} GB</translation>
    </message>
    <message>
        <source>{n} KB</source>
        <translation>{n} KB</translation>
    </message>
    <message>
        <source>{n} MB</source>
        <translation>{n} MB</translation>
    </message>
    <message>
        <source>{n} TB</source>
        <translation>{n} TB</translation>
    </message>
    <message>
        <source>{n} being answered</source>
        <translation>{n} in Arbeit</translation>
    </message>
    <message>
        <source>{n} block|{n} blocks</source>
        <translation>{n} Block|{n} Blöcke</translation>
    </message>
    <message>
        <source>{n} d</source>
        <translation>{n} T.</translation>
    </message>
    <message>
        <source>{n} failed|{n} failed</source>
        <translation>{n} fehlgeschlagen|{n} fehlgeschlagen</translation>
    </message>
    <message>
        <source>{n} h</source>
        <translation>{n} Std.</translation>
    </message>
    <message>
        <source>{n} min</source>
        <translation>{n} Min.</translation>
    </message>
    <message>
        <source>{n} of the first {total} rows cannot be asked; the table says why.|{n} of the first {total} rows cannot be asked; the table says why.</source>
        <translation>{n} der ersten {total} Zeilen ist nicht verwendbar; die Tabelle sagt, warum.|{n} der ersten {total} Zeilen sind nicht verwendbar; die Tabelle sagt, warum.</translation>
    </message>
    <message>
        <source>{n} of {total} rows cannot be asked|{n} of {total} rows cannot be asked</source>
        <translation>{n} von {total} Zeilen ist nicht verwendbar|{n} von {total} Zeilen sind nicht verwendbar</translation>
    </message>
    <message>
        <source>{n} of {total} rows could not be asked|{n} of {total} rows could not be asked</source>
        <translation>{n} von {total} Zeilen war nicht verwendbar|{n} von {total} Zeilen waren nicht verwendbar</translation>
    </message>
    <message>
        <source>{n} other node|{n} other nodes</source>
        <translation>{n} anderer Knoten|{n} andere Knoten</translation>
    </message>
    <message>
        <source>{n} read so far</source>
        <translation>{n} bisher gelesen</translation>
    </message>
    <message>
        <source>{n} relayed|{n} relayed</source>
        <translation>{n} über Relais|{n} über Relais</translation>
    </message>
    <message>
        <source>{n} relay|{n} relays</source>
        <translation>{n} Relais|{n} Relais</translation>
    </message>
    <message>
        <source>{n} row answered|{n} rows answered</source>
        <translation>{n} Zeile beantwortet|{n} Zeilen beantwortet</translation>
    </message>
    <message>
        <source>{n} s</source>
        <translation>{n} s</translation>
    </message>
    <message>
        <source>{n} tokens/s</source>
        <translation>{n} Token/s</translation>
    </message>
    <message>
        <source>{n} token|{n} tokens</source>
        <translation>{n} Token|{n} Token</translation>
    </message>
    <message>
        <source>{part} of {all}</source>
        <translation>{part} von {all}</translation>
    </message>
    <message>
        <source>{path} cannot be written ({reason}); choose another place.</source>
        <translation>{path} kann nicht geschrieben werden ({reason}); wähle einen anderen Ort.</translation>
    </message>
    <message>
        <source>{program} cannot be started. Install Shoal again.</source>
        <translation>{program} lässt sich nicht starten. Installiere Shoal neu.</translation>
    </message>
    <message>
        <source>{rate} tokens a round by looking up</source>
        <translation>{rate} Token je Runde durch Nachschlagen</translation>
    </message>
    <message>
        <source>{rate} tokens a round with a draft model</source>
        <translation>{rate} Token je Runde mit einem Entwurfsmodell</translation>
    </message>
    <message>
        <source>{rate} tokens/s</source>
        <translation>{rate} Token/s</translation>
    </message>
    <message>
        <source>{read} read, {written} written</source>
        <translation>{read} gelesen, {written} geschrieben</translation>
    </message>
    <message>
        <source>{size} more room is needed. It usually takes {n} computers that give 8 GB each.</source>
        <translation>Es fehlen {size} Platz. Meist braucht es dafür {n} Computer, die je 8 GB geben.</translation>
    </message>
    <message>
        <source>{span} of {count}</source>
        <translation>{span} von {count}</translation>
    </message>
    <message>
        <source>{swarm}, {n} stage|{swarm}, {n} stages</source>
        <translation>{swarm}, {n} Stufe|{swarm}, {n} Stufen</translation>
    </message>
    <message>
        <source>{used} of {all} tokens</source>
        <translation>{used} von {all} Token</translation>
    </message>
    <message>
        <source>{used} of {total} tokens in use</source>
        <translation>{used} von {total} Token belegt</translation>
    </message>
    <message>
        <source>{weekday} {date}, {time}</source>
        <translation>{weekday}, {date}, {time}</translation>
    </message>
    <message>
        <source>{what}: {share}</source>
        <translation>{what}: {share}</translation>
    </message>
    <message>
        <source>{what}: {share} of {size}</source>
        <translation>{what}: {share} von {size}</translation>
    </message>
    <message>
        <source>“{name}” has failed: {reason}</source>
        <translation>„{name}“ ist fehlgeschlagen: {reason}</translation>
    </message>
    <message>
        <source>“{name}” is done: {what}.</source>
        <translation>„{name}“ ist fertig: {what}.</translation>
    </message>
    <message>
        <source>“{name}” is in the trash.</source>
        <translation>„{name}“ ist im Papierkorb.</translation>
    </message>
    <message>
        <source>“{name}” was cancelled.</source>
        <translation>„{name}“ wurde abgebrochen.</translation>
    </message>
    <message>
        <source>“{sign}”</source>
        <translation>„{sign}“</translation>
    </message>
    <message>
        <source>“{title}” is in the trash.</source>
        <translation>„{title}“ ist im Papierkorb.</translation>
    </message>
</context>
</TS>
