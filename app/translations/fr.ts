<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="fr" sourcelanguage="en">
<context>
    <name>app</name>
    <message>
        <source> GB</source>
        <translation> Go</translation>
    </message>
    <message>
        <source> MB</source>
        <translation> Mo</translation>
    </message>
    <message>
        <source> min</source>
        <translation> min</translation>
    </message>
    <message>
        <source>&amp;Activity</source>
        <translation>&amp;Activité</translation>
    </message>
    <message>
        <source>&amp;Alone on this computer: nothing leaves it</source>
        <translation>Seul sur cet &amp;ordinateur : rien n’en sort</translation>
    </message>
    <message>
        <source>&amp;Apply</source>
        <translation>&amp;Appliquer</translation>
    </message>
    <message>
        <source>&amp;Back</source>
        <translation>&amp;Retour</translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation>Ann&amp;uler</translation>
    </message>
    <message>
        <source>&amp;Copy the conversation</source>
        <translation>&amp;Copier la conversation</translation>
    </message>
    <message>
        <source>&amp;Copy the invite</source>
        <translation>Copier l’in&amp;vitation</translation>
    </message>
    <message>
        <source>&amp;Delete</source>
        <translation>&amp;Supprimer</translation>
    </message>
    <message>
        <source>&amp;Download</source>
        <translation>Récep&amp;tion</translation>
    </message>
    <message>
        <source>&amp;Download and set up</source>
        <translation>&amp;Télécharger et installer</translation>
    </message>
    <message>
        <source>&amp;File</source>
        <translation>&amp;Fichier</translation>
    </message>
    <message>
        <source>&amp;Finish, then pause</source>
        <translation>&amp;Terminer, puis suspendre</translation>
    </message>
    <message>
        <source>&amp;Found a swarm and invite others</source>
        <translation>&amp;Fonder un essaim et inviter d’autres personnes</translation>
    </message>
    <message>
        <source>&amp;Insert column</source>
        <translation>&amp;Insérer une colonne</translation>
    </message>
    <message>
        <source>&amp;Interrupt</source>
        <translation>&amp;Interrompre</translation>
    </message>
    <message>
        <source>&amp;Join a swarm with an invite</source>
        <translation>Re&amp;joindre un essaim avec une invitation</translation>
    </message>
    <message>
        <source>&amp;Keep a copy…</source>
        <translation>&amp;Garder une copie…</translation>
    </message>
    <message>
        <source>&amp;Keep serving</source>
        <translation>&amp;Continuer à servir</translation>
    </message>
    <message>
        <source>&amp;Log</source>
        <translation>&amp;Journal</translation>
    </message>
    <message>
        <source>&amp;Longest answer</source>
        <translation>Réponse &amp;longue</translation>
    </message>
    <message>
        <source>&amp;Measure</source>
        <translation>&amp;Mesurer</translation>
    </message>
    <message>
        <source>&amp;Measure again</source>
        <translation>Mesurer à &amp;nouveau</translation>
    </message>
    <message>
        <source>&amp;My part</source>
        <translation>Ma pa&amp;rt</translation>
    </message>
    <message>
        <source>&amp;New batch</source>
        <translation>&amp;Nouveau lot</translation>
    </message>
    <message>
        <source>&amp;New chat</source>
        <translation>&amp;Nouvelle discussion</translation>
    </message>
    <message>
        <source>&amp;Next</source>
        <translation>&amp;Suivant</translation>
    </message>
    <message>
        <source>&amp;Open a file…</source>
        <translation>Ouvrir un fic&amp;hier…</translation>
    </message>
    <message>
        <source>&amp;Open chat</source>
        <translation>&amp;Ouvrir la discussion</translation>
    </message>
    <message>
        <source>&amp;Pause</source>
        <translation>&amp;Pause</translation>
    </message>
    <message>
        <source>&amp;Pause now</source>
        <translation>&amp;Suspendre maintenant</translation>
    </message>
    <message>
        <source>&amp;Pause until I resume</source>
        <translation>&amp;Suspendre jusqu’à ma reprise</translation>
    </message>
    <message>
        <source>&amp;Preset</source>
        <translation>&amp;Préréglage</translation>
    </message>
    <message>
        <source>&amp;Private: only who has the invite gets in</source>
        <translation>&amp;Privé : seuls entrent ceux qui ont l’invitation</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>&amp;Quitter</translation>
    </message>
    <message>
        <source>&amp;Quit (engine keeps running)</source>
        <translation>&amp;Quitter (le moteur continue)</translation>
    </message>
    <message>
        <source>&amp;Quit Shoal</source>
        <translation>&amp;Quitter Shoal</translation>
    </message>
    <message>
        <source>&amp;Remove what was downloaded</source>
        <translation>&amp;Supprimer ce qui a été téléchargé</translation>
    </message>
    <message>
        <source>&amp;Rename</source>
        <translation>&amp;Renommer</translation>
    </message>
    <message>
        <source>&amp;Restore a copy…</source>
        <translation>&amp;Restaurer une copie…</translation>
    </message>
    <message>
        <source>&amp;Resume</source>
        <translation>Re&amp;prendre</translation>
    </message>
    <message>
        <source>&amp;Save the archive…</source>
        <translation>&amp;Enregistrer l’archive…</translation>
    </message>
    <message>
        <source>&amp;Start again now</source>
        <translation>Redé&amp;marrer maintenant</translation>
    </message>
    <message>
        <source>&amp;Start the engine</source>
        <translation>Démarrer le mo&amp;teur</translation>
    </message>
    <message>
        <source>&amp;Start the setup</source>
        <translation>La&amp;ncer l’installation</translation>
    </message>
    <message>
        <source>&amp;Start without these rows</source>
        <translation>&amp;Démarrer sans ces lignes</translation>
    </message>
    <message>
        <source>&amp;System prompt</source>
        <translation>Prompt &amp;système</translation>
    </message>
    <message>
        <source>&amp;Take back</source>
        <translation>A&amp;bandonner</translation>
    </message>
    <message>
        <source>&amp;Try again</source>
        <translation>Réessa&amp;yer</translation>
    </message>
    <message>
        <source>&amp;Update to Shoal {version}</source>
        <translation>&amp;Mettre à jour vers Shoal {version}</translation>
    </message>
    <message>
        <source>&amp;Upload</source>
        <translation>&amp;Envoi</translation>
    </message>
    <message>
        <source>; the first {n}:</source>
        <translation> ; les {n} premières :</translation>
    </message>
    <message>
        <source>A PEM file to trust besides the system's, such as your company's. Empty: none.</source>
        <translation>Un fichier PEM de confiance en plus de ceux du système, comme celui de votre entreprise. Vide : aucun.</translation>
    </message>
    <message>
        <source>A block of {model} takes {block_mb} MB, but the limits leave {room_mb} MB for blocks; allow more memory, or choose a smaller model.</source>
        <translation>Un bloc de {model} prend {block_mb} Mo, mais les limites laissent {room_mb} Mo aux blocs ; autorisez plus de mémoire ou choisissez un modèle plus petit.</translation>
    </message>
    <message>
        <source>A chat on this computer alone would get about {rate} tokens a second.</source>
        <translation>Une discussion sur cet ordinateur seul atteindrait environ {rate} tokens par seconde.</translation>
    </message>
    <message>
        <source>A good all-rounder in many languages.</source>
        <translation>Un bon généraliste dans de nombreuses langues.</translation>
    </message>
    <message>
        <source>A key tells your node from others. Keep a copy, to be the same node on another computer; whoever has the copy and its passphrase can pose as you.</source>
        <translation>Une clé distingue votre nœud des autres. Gardez-en une copie pour être le même nœud sur un autre ordinateur ; qui possède la copie et sa phrase de passe peut se faire passer pour vous.</translation>
    </message>
    <message>
        <source>A message takes at most {n} files.</source>
        <translation>Un message accepte au plus {n} fichiers.</translation>
    </message>
    <message>
        <source>A quote (") is opened here and never closed; close it, or double it if it is text.</source>
        <translation>Un guillemet (") est ouvert ici et jamais fermé ; fermez-le, ou doublez-le s’il fait partie du texte.</translation>
    </message>
    <message>
        <source>A swarm runs the model that it was founded with; leave it to choose another.</source>
        <translation>Un essaim utilise le modèle avec lequel il a été fondé ; quittez-le pour en choisir un autre.</translation>
    </message>
    <message>
        <source>A table (CSV), a text, or lines of JSON</source>
        <translation>Un tableau (CSV), un texte ou des lignes JSON</translation>
    </message>
    <message>
        <source>Address of the API</source>
        <translation>Adresse de l’API</translation>
    </message>
    <message>
        <source>Again</source>
        <translation>Encore</translation>
    </message>
    <message>
        <source>All blocks are held, but no way through them is open now.</source>
        <translation>Tous les blocs sont là, mais aucun chemin n’est ouvert pour l’instant.</translation>
    </message>
    <message>
        <source>All conversations here use it.</source>
        <translation>Toutes les conversations ici l’utilisent.</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>Tous les fichiers (*)</translation>
    </message>
    <message>
        <source>Almost ready…</source>
        <translation>Presque prêt…</translation>
    </message>
    <message>
        <source>Another model is loaded for all conversations on this computer.</source>
        <translation>Un autre modèle est chargé pour toutes les conversations de cet ordinateur.</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>Réponse</translation>
    </message>
    <message>
        <source>Answer once more (Ctrl+R)</source>
        <translation>Répondre à nouveau (Ctrl+R)</translation>
    </message>
    <message>
        <source>Applying…</source>
        <translation>Application…</translation>
    </message>
    <message>
        <source>Ask anything</source>
        <translation>Posez votre question</translation>
    </message>
    <message>
        <source>Asking the engine…</source>
        <translation>Interrogation du moteur…</translation>
    </message>
    <message>
        <source>Attach text files</source>
        <translation>Joindre des fichiers texte</translation>
    </message>
    <message>
        <source>Attach text files (Ctrl+O)</source>
        <translation>Joindre des fichiers texte (Ctrl+O)</translation>
    </message>
    <message>
        <source>Bandwidth</source>
        <translation>Débit</translation>
    </message>
    <message>
        <source>Batches</source>
        <translation>Lots</translation>
    </message>
    <message>
        <source>Be&amp;gin</source>
        <translation>&amp;Commencer</translation>
    </message>
    <message>
        <source>Begin another conversation (Ctrl+N)</source>
        <translation>Commencer une autre conversation (Ctrl+N)</translation>
    </message>
    <message>
        <source>Beginning …</source>
        <translation>Ça commence …</translation>
    </message>
    <message>
        <source>Beginning…</source>
        <translation>Démarrage…</translation>
    </message>
    <message>
        <source>Being answered</source>
        <translation>En traitement</translation>
    </message>
    <message>
        <source>Beside it</source>
        <translation>À côté</translation>
    </message>
    <message>
        <source>Beside it: {nodes}</source>
        <translation>À côté : {nodes}</translation>
    </message>
    <message>
        <source>Block {span}</source>
        <translation>Bloc {span}</translation>
    </message>
    <message>
        <source>Blocks</source>
        <translation>Blocs</translation>
    </message>
    <message>
        <source>Blocks {path}</source>
        <translation>Blocs {path}</translation>
    </message>
    <message>
        <source>Blocks {span}</source>
        <translation>Blocs {span}</translation>
    </message>
    <message>
        <source>Bring the conversation back</source>
        <translation>Récupérer la conversation</translation>
    </message>
    <message>
        <source>Broken off</source>
        <translation>Interrompue</translation>
    </message>
    <message>
        <source>By now the swarm needs blocks {span} more.</source>
        <translation>Désormais, l’essaim a davantage besoin des blocs {span}.</translation>
    </message>
    <message>
        <source>By now the swarm needs nobody to move.</source>
        <translation>Désormais, l’essaim n’a besoin d’aucun déplacement.</translation>
    </message>
    <message>
        <source>By pauses between steps; the driver's own limit, which slows down other programs, too, stays as it is.</source>
        <translation>Par des pauses entre les étapes ; la limite propre du pilote, qui ralentit aussi les autres programmes, reste telle quelle.</translation>
    </message>
    <message>
        <source>Cache</source>
        <translation>Cache</translation>
    </message>
    <message>
        <source>Cache in RAM</source>
        <translation>Cache en RAM</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Annuler</translation>
    </message>
    <message>
        <source>Cancelled</source>
        <translation>Annulé</translation>
    </message>
    <message>
        <source>Certificates for downloads</source>
        <translation>Certificats pour les téléchargements</translation>
    </message>
    <message>
        <source>Change &amp;swarm</source>
        <translation>Changer d’&amp;essaim</translation>
    </message>
    <message>
        <source>Check all rows and start</source>
        <translation>Vérifier toutes les lignes et démarrer</translation>
    </message>
    <message>
        <source>Check and &amp;start</source>
        <translation>&amp;Vérifier et démarrer</translation>
    </message>
    <message>
        <source>Checking the rows</source>
        <translation>Vérification des lignes</translation>
    </message>
    <message>
        <source>Checking {model}</source>
        <translation>Vérification de {model}</translation>
    </message>
    <message>
        <source>Choose a file, or drop one here; then you see its first rows as they are asked.</source>
        <translation>Choisissez un fichier ou déposez-le ici ; ses premières lignes s’affichent telles qu’elles iront au modèle.</translation>
    </message>
    <message>
        <source>Choose a folder for models</source>
        <translation>Choisir un dossier pour les modèles</translation>
    </message>
    <message>
        <source>Choose another fol&amp;der…</source>
        <translation>Choisir un autre &amp;dossier…</translation>
    </message>
    <message>
        <source>Choose the file for the results</source>
        <translation>Choisir le fichier des résultats</translation>
    </message>
    <message>
        <source>Choose the file with the rows</source>
        <translation>Choisir le fichier des lignes</translation>
    </message>
    <message>
        <source>Choose the model</source>
        <translation>Choisir le modèle</translation>
    </message>
    <message>
        <source>Choose: {name}</source>
        <translation>Choisir : {name}</translation>
    </message>
    <message>
        <source>Choose: {what}</source>
        <translation>Choisir : {what}</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>Choisir…</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Fermer</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>Code</translation>
    </message>
    <message>
        <source>Colou&amp;rs</source>
        <translation>Couleu&amp;rs</translation>
    </message>
    <message>
        <source>Colours</source>
        <translation>Couleurs</translation>
    </message>
    <message>
        <source>Come back after so much quiet</source>
        <translation>Revenir après un calme de</translation>
    </message>
    <message>
        <source>Comes with Shoal; small enough for any computer. For trying out, not for answers to rely on.</source>
        <translation>Fourni avec Shoal ; assez petit pour tout ordinateur. Pour essayer, pas pour des réponses fiables.</translation>
    </message>
    <message>
        <source>Command that installs the new version</source>
        <translation>Commande qui installe la nouvelle version</translation>
    </message>
    <message>
        <source>Compute on</source>
        <translation>Calculer sur</translation>
    </message>
    <message>
        <source>Computes on</source>
        <translation>Calcule sur</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>Continuer</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>Conversation</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>Conversations</translation>
    </message>
    <message>
        <source>Converting {model}</source>
        <translation>Conversion de {model}</translation>
    </message>
    <message>
        <source>Cooling down: the GPU has {degrees} °C.</source>
        <translation>Refroidissement : le GPU est à {degrees} °C.</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Copié</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Copier</translation>
    </message>
    <message>
        <source>Copy &amp;example</source>
        <translation>Copier l’&amp;exemple</translation>
    </message>
    <message>
        <source>Copy a&amp;ddress</source>
        <translation>Copier l’a&amp;dresse</translation>
    </message>
    <message>
        <source>Copy t&amp;oken</source>
        <translation>Copier le &amp;jeton</translation>
    </message>
    <message>
        <source>Copy the &amp;command</source>
        <translation>Copier la comman&amp;de</translation>
    </message>
    <message>
        <source>Copy the code</source>
        <translation>Copier le code</translation>
    </message>
    <message>
        <source>Copy the message</source>
        <translation>Copier le message</translation>
    </message>
    <message>
        <source>Cut off: the answer reached its length limit</source>
        <translation>Coupée : la réponse a atteint sa longueur maximale</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>Supprimer</translation>
    </message>
    <message>
        <source>Delete {model}</source>
        <translation>Supprimer {model}</translation>
    </message>
    <message>
        <source>Dia&amp;gnostics</source>
        <translation>Dia&amp;gnostic</translation>
    </message>
    <message>
        <source>Disk space for models</source>
        <translation>Espace disque pour les modèles</translation>
    </message>
    <message>
        <source>Do not attach {name}</source>
        <translation>Ne pas joindre {name}</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>Terminé</translation>
    </message>
    <message>
        <source>Done, with failed rows</source>
        <translation>Terminé, avec des lignes en échec</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>Débit descendant</translation>
    </message>
    <message>
        <source>Downloading the update</source>
        <translation>Téléchargement de la mise à jour</translation>
    </message>
    <message>
        <source>Downloading {model}</source>
        <translation>Téléchargement de {model}</translation>
    </message>
    <message>
        <source>Downloads of models included.</source>
        <translation>Téléchargements de modèles compris.</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Modifier</translation>
    </message>
    <message>
        <source>Edit and ask anew (Ctrl+E: the last)</source>
        <translation>Modifier et redemander (Ctrl+E : le dernier)</translation>
    </message>
    <message>
        <source>Empty: the usual place. Models that are elsewhere stay there.</source>
        <translation>Vide : l’endroit habituel. Les modèles situés ailleurs y restent.</translation>
    </message>
    <message>
        <source>Enter sends, Shift+Enter starts a new line</source>
        <translation>Entrée envoie, Maj+Entrée commence une nouvelle ligne</translation>
    </message>
    <message>
        <source>Everything is paused for a while.</source>
        <translation>Tout est en pause pour un moment.</translation>
    </message>
    <message>
        <source>Everything is paused until tomorrow.</source>
        <translation>Tout est en pause jusqu’à demain.</translation>
    </message>
    <message>
        <source>Everything is paused until you resume.</source>
        <translation>Tout est en pause jusqu’à votre reprise.</translation>
    </message>
    <message>
        <source>Example</source>
        <translation>Exemple</translation>
    </message>
    <message>
        <source>Export as &amp;JSON…</source>
        <translation>Exporter en &amp;JSON…</translation>
    </message>
    <message>
        <source>Export as &amp;Markdown…</source>
        <translation>Exporter en &amp;Markdown…</translation>
    </message>
    <message>
        <source>Export the chat</source>
        <translation>Exporter la discussion</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>En échec</translation>
    </message>
    <message>
        <source>Fetching PyTorch, the largest part …</source>
        <translation>Téléchargement de PyTorch, la plus grande partie …</translation>
    </message>
    <message>
        <source>Fetching Shoal {version}: {done} of {total}.</source>
        <translation>Téléchargement de Shoal {version} : {done} sur {total}.</translation>
    </message>
    <message>
        <source>Fetching the libraries it needs …</source>
        <translation>Téléchargement des bibliothèques nécessaires …</translation>
    </message>
    <message>
        <source>File for the results</source>
        <translation>Fichier des résultats</translation>
    </message>
    <message>
        <source>File with the rows</source>
        <translation>Fichier des lignes</translation>
    </message>
    <message>
        <source>Files of the archive</source>
        <translation>Fichiers de l’archive</translation>
    </message>
    <message>
        <source>Finishing running requests, then moving to blocks {span}.</source>
        <translation>Fin des requêtes en cours, puis passage aux blocs {span}.</translation>
    </message>
    <message>
        <source>Finishing running requests, then pausing.</source>
        <translation>Fin des requêtes en cours, puis pause.</translation>
    </message>
    <message>
        <source>Finishing {n} session, then pausing|Finishing {n} sessions, then pausing</source>
        <translation>Termine {n} session, puis pause|Termine {n} sessions, puis pause</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>Dossier</translation>
    </message>
    <message>
        <source>Folder for models</source>
        <translation>Dossier des modèles</translation>
    </message>
    <message>
        <source>For all connections together. With a limit, nothing is relayed for others.</source>
        <translation>Pour toutes les connexions ensemble. Avec une limite, rien n’est relayé pour d’autres.</translation>
    </message>
    <message>
        <source>For&amp;mat</source>
        <translation>F&amp;ormat</translation>
    </message>
    <message>
        <source>Forget</source>
        <translation>Oublier</translation>
    </message>
    <message>
        <source>Forget the chosen preset</source>
        <translation>Oublier le préréglage choisi</translation>
    </message>
    <message>
        <source>Format of the file</source>
        <translation>Format du fichier</translation>
    </message>
    <message>
        <source>Found by itself</source>
        <translation>Détecté automatiquement</translation>
    </message>
    <message>
        <source>GPU load</source>
        <translation>Charge GPU</translation>
    </message>
    <message>
        <source>GPU memory</source>
        <translation>Mémoire GPU</translation>
    </message>
    <message>
        <source>GPU temperature</source>
        <translation>Température GPU</translation>
    </message>
    <message>
        <source>Getting ready</source>
        <translation>Préparation</translation>
    </message>
    <message>
        <source>Getting ready…</source>
        <translation>Préparation…</translation>
    </message>
    <message>
        <source>Give on battery, too</source>
        <translation>Partager aussi sur batterie</translation>
    </message>
    <message>
        <source>Give over metered connections, too</source>
        <translation>Partager aussi sur une connexion limitée</translation>
    </message>
    <message>
        <source>Give this invite to those who shall join. It contains the key to the swarm.</source>
        <translation>Donnez cette invitation à ceux qui doivent rejoindre l’essaim. Elle contient sa clé.</translation>
    </message>
    <message>
        <source>Give when you have been away for</source>
        <translation>Partager après une absence de</translation>
    </message>
    <message>
        <source>Go on in the &amp;tray when all windows are closed</source>
        <translation>Rester dans la &amp;zone de notification sans fenêtre</translation>
    </message>
    <message>
        <source>Go to the newest message</source>
        <translation>Aller au dernier message</translation>
    </message>
    <message>
        <source>Go to the newest message (Ctrl+End)</source>
        <translation>Aller au dernier message (Ctrl+Fin)</translation>
    </message>
    <message>
        <source>High: before other batches</source>
        <translation>Haute : avant les autres lots</translation>
    </message>
    <message>
        <source>Hold blocks; without, you only use the swarm</source>
        <translation>Héberger des blocs ; sinon, vous ne faites qu’utiliser l’essaim</translation>
    </message>
    <message>
        <source>Hours to give</source>
        <translation>Heures de partage</translation>
    </message>
    <message>
        <source>How full the model's context is</source>
        <translation>Remplissage du contexte du modèle</translation>
    </message>
    <message>
        <source>How to begin</source>
        <translation>Comment commencer</translation>
    </message>
    <message>
        <source>I&amp;nstall Shoal {version}</source>
        <translation>I&amp;nstaller Shoal {version}</translation>
    </message>
    <message>
        <source>Id</source>
        <translation>Identifiant</translation>
    </message>
    <message>
        <source>Identity</source>
        <translation>Identité</translation>
    </message>
    <message>
        <source>In a swarm, that line passes on at most {rate} tokens a second.</source>
        <translation>Dans un essaim, cette ligne transmet au plus {rate} tokens par seconde.</translation>
    </message>
    <message>
        <source>In no swarm: the model runs on this computer alone.</source>
        <translation>Dans aucun essaim : le modèle fonctionne uniquement sur cet ordinateur.</translation>
    </message>
    <message>
        <source>In the private swarm {name}.</source>
        <translation>Dans l’essaim privé {name}.</translation>
    </message>
    <message>
        <source>In the public swarm {name}.</source>
        <translation>Dans l’essaim public {name}.</translation>
    </message>
    <message>
        <source>In use</source>
        <translation>Utilisé</translation>
    </message>
    <message>
        <source>Insert a column into the prompt</source>
        <translation>Insérer une colonne dans le prompt</translation>
    </message>
    <message>
        <source>Instructions before each prompt; may be empty</source>
        <translation>Instructions avant chaque prompt ; peut rester vide</translation>
    </message>
    <message>
        <source>Interrupted: Shoal ended meanwhile</source>
        <translation>Interrompue : Shoal s’est arrêté entre-temps</translation>
    </message>
    <message>
        <source>Interrupting …</source>
        <translation>Interruption …</translation>
    </message>
    <message>
        <source>Invite</source>
        <translation>Invitation</translation>
    </message>
    <message>
        <source>Invites (*.shoal);;All files (*)</source>
        <translation>Invitations (*.shoal);;Tous les fichiers (*)</translation>
    </message>
    <message>
        <source>It ended without saying why.</source>
        <translation>Cela s’est terminé sans dire pourquoi.</translation>
    </message>
    <message>
        <source>It ended {count} times in a row. {reason} The log is {file}.</source>
        <translation>Il s’est arrêté {count} fois de suite. {reason} Le journal est {file}.</translation>
    </message>
    <message>
        <source>It holds no blocks: it only uses what others give.</source>
        <translation>Il n’héberge aucun bloc : il ne fait qu’utiliser ce que d’autres donnent.</translation>
    </message>
    <message>
        <source>Its name</source>
        <translation>Son nom</translation>
    </message>
    <message>
        <source>Joining the swarm {name}.</source>
        <translation>Connexion à l’essaim {name}.</translation>
    </message>
    <message>
        <source>Keep a copy of the identity</source>
        <translation>Garder une copie de l’identité</translation>
    </message>
    <message>
        <source>Keep as preset</source>
        <translation>Garder comme préréglage</translation>
    </message>
    <message>
        <source>Keep as preset…</source>
        <translation>Garder comme préréglage…</translation>
    </message>
    <message>
        <source>Keep these settings as a preset</source>
        <translation>Garder ces réglages comme préréglage</translation>
    </message>
    <message>
        <source>Lan&amp;guage</source>
        <translation>Lan&amp;gue</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>Langue</translation>
    </message>
    <message>
        <source>Last &amp;day</source>
        <translation>Dernier jo&amp;ur</translation>
    </message>
    <message>
        <source>Last &amp;hour</source>
        <translation>Dernière &amp;heure</translation>
    </message>
    <message>
        <source>Last &amp;week</source>
        <translation>Dernière se&amp;maine</translation>
    </message>
    <message>
        <source>Leave free on the disk</source>
        <translation>Laisser libre sur le disque</translation>
    </message>
    <message>
        <source>Leave the message as it was</source>
        <translation>Laisser le message tel qu’il était</translation>
    </message>
    <message>
        <source>Let the GPU cool down above</source>
        <translation>Laisser refroidir le GPU au-dessus de</translation>
    </message>
    <message>
        <source>Let the GPU draw at most</source>
        <translation>Laisser le GPU consommer au plus</translation>
    </message>
    <message>
        <source>Let the answer go on (Ctrl+G)</source>
        <translation>Laisser la réponse continuer (Ctrl+G)</translation>
    </message>
    <message>
        <source>Limits</source>
        <translation>Limites</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Ligne</translation>
    </message>
    <message>
        <source>Line {line}, column {column}: {text}</source>
        <translation>Ligne {line}, colonne {column} : {text}</translation>
    </message>
    <message>
        <source>Line {line}: {text}</source>
        <translation>Ligne {line} : {text}</translation>
    </message>
    <message>
        <source>Lines of JSON (*.jsonl)</source>
        <translation>Lignes JSON (*.jsonl)</translation>
    </message>
    <message>
        <source>Lines of JSON (OpenAI's too)</source>
        <translation>Lignes JSON (dont celles d’OpenAI)</translation>
    </message>
    <message>
        <source>Lines of JSON with {n} column|Lines of JSON with {n} columns</source>
        <translation>Lignes JSON à {n} colonne|Lignes JSON à {n} colonnes</translation>
    </message>
    <message>
        <source>Lines of JSON, one request each</source>
        <translation>Lignes JSON, une requête chacune</translation>
    </message>
    <message>
        <source>Links</source>
        <translation>Liens</translation>
    </message>
    <message>
        <source>Links to other nodes</source>
        <translation>Liens vers d’autres nœuds</translation>
    </message>
    <message>
        <source>Loading blocks {span}</source>
        <translation>Chargement des blocs {span}</translation>
    </message>
    <message>
        <source>Loading blocks {span}.</source>
        <translation>Chargement des blocs {span}.</translation>
    </message>
    <message>
        <source>Local</source>
        <translation>Local</translation>
    </message>
    <message>
        <source>Long, careful answers; needs many computers.</source>
        <translation>Réponses longues et soignées ; demande beaucoup d’ordinateurs.</translation>
    </message>
    <message>
        <source>Longest answer</source>
        <translation>Réponse la plus longue</translation>
    </message>
    <message>
        <source>Longest answer, in tokens</source>
        <translation>Réponse la plus longue, en tokens</translation>
    </message>
    <message>
        <source>Look for a new &amp;version</source>
        <translation>Chercher une nouvelle &amp;version</translation>
    </message>
    <message>
        <source>Look for a new version once a &amp;day</source>
        <translation>Chercher une nouvelle version une fois par &amp;jour</translation>
    </message>
    <message>
        <source>Looking at this computer …</source>
        <translation>Examen de cet ordinateur …</translation>
    </message>
    <message>
        <source>Looking for a place in the swarm.</source>
        <translation>Recherche d’une place dans l’essaim.</translation>
    </message>
    <message>
        <source>Looking up {model}</source>
        <translation>Recherche de {model}</translation>
    </message>
    <message>
        <source>Low: after other batches</source>
        <translation>Basse : après les autres lots</translation>
    </message>
    <message>
        <source>Making a place of its own for it …</source>
        <translation>Création d’un emplacement réservé …</translation>
    </message>
    <message>
        <source>Measuring this computer</source>
        <translation>Mesure de cet ordinateur</translation>
    </message>
    <message>
        <source>Measuring…</source>
        <translation>Mesure…</translation>
    </message>
    <message>
        <source>Members of {swarm}, who were invited, can read your messages.</source>
        <translation>Les membres de {swarm}, tous invités, peuvent lire vos messages.</translation>
    </message>
    <message>
        <source>Memor&amp;y</source>
        <translation>Mém&amp;oire</translation>
    </message>
    <message>
        <source>Memory in use</source>
        <translation>Mémoire utilisée</translation>
    </message>
    <message>
        <source>Memory of Shoal</source>
        <translation>Mémoire de Shoal</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>Message</translation>
    </message>
    <message>
        <source>Min p</source>
        <translation>Min-p</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modèle</translation>
    </message>
    <message>
        <source>Model that proposes them</source>
        <translation>Modèle qui les propose</translation>
    </message>
    <message>
        <source>Model {model}: choose another</source>
        <translation>Modèle {model} : en choisir un autre</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modèles</translation>
    </message>
    <message>
        <source>Models are kept in {folder}, where {free} are free.</source>
        <translation>Les modèles sont gardés dans {folder}, où {free} sont libres.</translation>
    </message>
    <message>
        <source>Models will be kept in {folder}.</source>
        <translation>Les modèles seront gardés dans {folder}.</translation>
    </message>
    <message>
        <source>More about this chat</source>
        <translation>Plus sur cette discussion</translation>
    </message>
    <message>
        <source>Most of the time goes into {what}: {time} of {whole} for each token.</source>
        <translation>Le plus long est {what} : {time} sur {whole} par token.</translation>
    </message>
    <message>
        <source>Move to blocks that the swarm needs more</source>
        <translation>Passer aux blocs dont l’essaim a le plus besoin</translation>
    </message>
    <message>
        <source>Moving to blocks {span}.</source>
        <translation>Passage aux blocs {span}.</translation>
    </message>
    <message>
        <source>My name</source>
        <translation>Mon nom</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Nom</translation>
    </message>
    <message>
        <source>Name of the swarm</source>
        <translation>Nom de l’essaim</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Réseau</translation>
    </message>
    <message>
        <source>New batch</source>
        <translation>Nouveau lot</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Nouvelle discussion</translation>
    </message>
    <message>
        <source>No limit of its own</source>
        <translation>Sans limite propre</translation>
    </message>
    <message>
        <source>No links now; they open when tokens travel.</source>
        <translation>Aucun lien pour l’instant ; ils s’ouvrent quand des tokens circulent.</translation>
    </message>
    <message>
        <source>No links: nobody else is in the swarm now. Invite somebody.</source>
        <translation>Aucun lien : personne d’autre n’est dans l’essaim. Invitez quelqu’un.</translation>
    </message>
    <message>
        <source>No links: the model runs on this computer alone.</source>
        <translation>Aucun lien : le modèle fonctionne uniquement sur cet ordinateur.</translation>
    </message>
    <message>
        <source>No model yet</source>
        <translation>Pas encore de modèle</translation>
    </message>
    <message>
        <source>Nobody</source>
        <translation>Personne</translation>
    </message>
    <message>
        <source>Nobody has looked for a new version yet.</source>
        <translation>Aucune nouvelle version n’a encore été cherchée.</translation>
    </message>
    <message>
        <source>Nobody holds blocks {spans}, so nothing can be answered until a node with them joins.</source>
        <translation>Personne n’héberge les blocs {spans} ; aucune réponse n’est possible avant qu’un nœud ne les apporte.</translation>
    </message>
    <message>
        <source>Nobody holds some of the model's blocks now. The chat opens when a node with them joins.</source>
        <translation>Personne n’héberge certains blocs du modèle en ce moment. La discussion s’ouvrira quand un nœud les apportera.</translation>
    </message>
    <message>
        <source>Node</source>
        <translation>Nœud</translation>
    </message>
    <message>
        <source>Nodes of the new version do not understand this one any more.</source>
        <translation>Les nœuds de la nouvelle version ne comprennent plus celle-ci.</translation>
    </message>
    <message>
        <source>None</source>
        <translation>Aucun</translation>
    </message>
    <message>
        <source>Normal</source>
        <translation>Normale</translation>
    </message>
    <message>
        <source>Not every way is measured yet.</source>
        <translation>Tous les chemins ne sont pas encore mesurés.</translation>
    </message>
    <message>
        <source>Not set up yet</source>
        <translation>Pas encore configuré</translation>
    </message>
    <message>
        <source>Nothing has been asked yet. Start without these rows (each gets an error in the results), or cancel, correct the file and begin again.</source>
        <translation>Rien n’a encore été envoyé au modèle. Démarrez sans ces lignes (chacune aura une erreur dans les résultats), ou annulez, corrigez le fichier et recommencez.</translation>
    </message>
    <message>
        <source>Nothing has been downloaded yet. You can change all of this later.</source>
        <translation>Rien n’a encore été téléchargé. Vous pourrez tout changer plus tard.</translation>
    </message>
    <message>
        <source>Nothing is found. Try fewer or other words.</source>
        <translation>Rien trouvé. Essayez moins de mots, ou d’autres.</translation>
    </message>
    <message>
        <source>Nothing was read from a GPU in this time.</source>
        <translation>Rien n’a été lu d’un GPU pendant cette période.</translation>
    </message>
    <message>
        <source>Nothing was recorded in this time.</source>
        <translation>Rien n’a été enregistré pendant cette période.</translation>
    </message>
    <message>
        <source>Nothing would be held</source>
        <translation>Rien ne serait hébergé</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>OK</translation>
    </message>
    <message>
        <source>Offline: no connection to the swarm</source>
        <translation>Hors ligne : pas de connexion à l’essaim</translation>
    </message>
    <message>
        <source>On the disk</source>
        <translation>Sur le disque</translation>
    </message>
    <message>
        <source>On this computer</source>
        <translation>Sur cet ordinateur</translation>
    </message>
    <message>
        <source>One line each, such as blender.</source>
        <translation>Un par ligne, par exemple blender.</translation>
    </message>
    <message>
        <source>One line each, such as mon-fri 18:00-08:00 or sat,sun. Empty: always.</source>
        <translation>Une par ligne, par exemple mon-fri 18:00-08:00 ou sat,sun. Vide : toujours.</translation>
    </message>
    <message>
        <source>One more thing: the engine</source>
        <translation>Encore une chose : le moteur</translation>
    </message>
    <message>
        <source>Only fail&amp;ed rows</source>
        <translation>Lignes en é&amp;chec seulement</translation>
    </message>
    <message>
        <source>Only {held} of the {count} blocks fit: others must hold the rest.</source>
        <translation>Seuls {held} des {count} blocs tiennent : d’autres doivent héberger le reste.</translation>
    </message>
    <message>
        <source>Open &amp;batches</source>
        <translation>Ouvrir les &amp;lots</translation>
    </message>
    <message>
        <source>Open &amp;dashboard</source>
        <translation>Ouvrir le tableau de &amp;bord</translation>
    </message>
    <message>
        <source>Open &amp;invites with Shoal: shoal:// links and .shoal files</source>
        <translation>Ouvrir les &amp;invitations avec Shoal (shoal:// et .shoal)</translation>
    </message>
    <message>
        <source>Open Shoal to choose how it begins.</source>
        <translation>Ouvrez Shoal pour choisir comment il commence.</translation>
    </message>
    <message>
        <source>Open an invite</source>
        <translation>Ouvrir une invitation</translation>
    </message>
    <message>
        <source>Open the &amp;folder</source>
        <translation>Ouvrir le &amp;dossier</translation>
    </message>
    <message>
        <source>Open the folder of the log</source>
        <translation>Ouvrir le dossier du journal</translation>
    </message>
    <message>
        <source>Other nodes</source>
        <translation>Autres nœuds</translation>
    </message>
    <message>
        <source>Other programs</source>
        <translation>Autres programmes</translation>
    </message>
    <message>
        <source>Outside the hours of your schedule.</source>
        <translation>En dehors de vos heures de partage.</translation>
    </message>
    <message>
        <source>Pages of the dashboard</source>
        <translation>Pages du tableau de bord</translation>
    </message>
    <message>
        <source>Pages of the settings</source>
        <translation>Pages des réglages</translation>
    </message>
    <message>
        <source>Passphrase</source>
        <translation>Phrase de passe</translation>
    </message>
    <message>
        <source>Passphrase, at least 8 characters</source>
        <translation>Phrase de passe, au moins 8 caractères</translation>
    </message>
    <message>
        <source>Paste the invite: shoal://…</source>
        <translation>Collez l’invitation : shoal://…</translation>
    </message>
    <message>
        <source>Pause &amp;everything, chat too</source>
        <translation>Tout suspendre, dis&amp;cussion comprise</translation>
    </message>
    <message>
        <source>Pause for 1 &amp;hour</source>
        <translation>Suspendre pendant 1 &amp;heure</translation>
    </message>
    <message>
        <source>Pause until &amp;tomorrow</source>
        <translation>Suspendre jusqu’à &amp;demain</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>En pause</translation>
    </message>
    <message>
        <source>Paused for a while.</source>
        <translation>En pause pour un moment.</translation>
    </message>
    <message>
        <source>Paused until tomorrow.</source>
        <translation>En pause jusqu’à demain.</translation>
    </message>
    <message>
        <source>Paused until you resume.</source>
        <translation>En pause jusqu’à votre reprise.</translation>
    </message>
    <message>
        <source>Paused {end}</source>
        <translation>En pause {end}</translation>
    </message>
    <message>
        <source>Pausing…</source>
        <translation>Mise en pause…</translation>
    </message>
    <message>
        <source>Picture of the pipeline</source>
        <translation>Image du pipeline</translation>
    </message>
    <message>
        <source>Please note</source>
        <translation>À noter</translation>
    </message>
    <message>
        <source>Port</source>
        <translation>Port</translation>
    </message>
    <message>
        <source>Preparing {model}.</source>
        <translation>Préparation de {model}.</translation>
    </message>
    <message>
        <source>Preset</source>
        <translation>Préréglage</translation>
    </message>
    <message>
        <source>Pri&amp;ority</source>
        <translation>Prio&amp;rité</translation>
    </message>
    <message>
        <source>Priority</source>
        <translation>Priorité</translation>
    </message>
    <message>
        <source>Priority {n}</source>
        <translation>Priorité {n}</translation>
    </message>
    <message>
        <source>Private</source>
        <translation>Privé</translation>
    </message>
    <message>
        <source>Processor threads</source>
        <translation>Fils du processeur</translation>
    </message>
    <message>
        <source>Programs that know OpenAI's API can use this engine.</source>
        <translation>Les programmes qui connaissent l’API d’OpenAI peuvent utiliser ce moteur.</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>Progression</translation>
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
        <translation>Proposer des tokens d’avance</translation>
    </message>
    <message>
        <source>Proxy for downloads</source>
        <translation>Proxy pour les téléchargements</translation>
    </message>
    <message>
        <source>Public</source>
        <translation>Public</translation>
    </message>
    <message>
        <source>Put &amp;away</source>
        <translation>&amp;Masquer</translation>
    </message>
    <message>
        <source>Putting in Shoal and trying it out …</source>
        <translation>Installation et essai de Shoal …</translation>
    </message>
    <message>
        <source>Quick and even-tempered; European languages.</source>
        <translation>Rapide et équilibré ; langues européennes.</translation>
    </message>
    <message>
        <source>RAM</source>
        <translation>RAM</translation>
    </message>
    <message>
        <source>Re&amp;place this file if it is there</source>
        <translation>Remplacer ce fic&amp;hier s’il existe</translation>
    </message>
    <message>
        <source>Re&amp;try failed rows</source>
        <translation>Réessayer les &amp;lignes en échec</translation>
    </message>
    <message>
        <source>Reached by</source>
        <translation>Joignable par</translation>
    </message>
    <message>
        <source>Reading the first rows…</source>
        <translation>Lecture des premières lignes…</translation>
    </message>
    <message>
        <source>Ready with all {count} blocks of {model}</source>
        <translation>Prêt avec les {count} blocs de {model}</translation>
    </message>
    <message>
        <source>Ready with blocks {span} of {model}</source>
        <translation>Prêt avec les blocs {span} de {model}</translation>
    </message>
    <message>
        <source>Ready with {model}</source>
        <translation>Prêt avec {model}</translation>
    </message>
    <message>
        <source>Ready. You can chat now.</source>
        <translation>Prêt. Vous pouvez discuter maintenant.</translation>
    </message>
    <message>
        <source>Really delete</source>
        <translation>Vraiment supprimer</translation>
    </message>
    <message>
        <source>Reconnecting to the engine…</source>
        <translation>Reconnexion au moteur…</translation>
    </message>
    <message>
        <source>Relay for computers that nobody can reach</source>
        <translation>Servir de relais aux ordinateurs injoignables</translation>
    </message>
    <message>
        <source>Relaying</source>
        <translation>Relais</translation>
    </message>
    <message>
        <source>Repetition penalty</source>
        <translation>Pénalité de répétition</translation>
    </message>
    <message>
        <source>Res&amp;ults</source>
        <translation>Résul&amp;tats</translation>
    </message>
    <message>
        <source>Restarting the engine…</source>
        <translation>Redémarrage du moteur…</translation>
    </message>
    <message>
        <source>Restore a copy of the identity</source>
        <translation>Restaurer une copie de l’identité</translation>
    </message>
    <message>
        <source>Restoring keeps the present key beside the new one, as identity.key.before.</source>
        <translation>La restauration garde la clé actuelle à côté de la nouvelle, sous identity.key.before.</translation>
    </message>
    <message>
        <source>Results</source>
        <translation>Résultats</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>Reprendre</translation>
    </message>
    <message>
        <source>Resuming…</source>
        <translation>Reprise…</translation>
    </message>
    <message>
        <source>Retry</source>
        <translation>Réessayer</translation>
    </message>
    <message>
        <source>Round trip</source>
        <translation>Aller-retour</translation>
    </message>
    <message>
        <source>Rows</source>
        <translation>Lignes</translation>
    </message>
    <message>
        <source>Rows of the batch</source>
        <translation>Lignes du lot</translation>
    </message>
    <message>
        <source>Rows that cannot be asked</source>
        <translation>Lignes inutilisables</translation>
    </message>
    <message>
        <source>Running</source>
        <translation>En cours</translation>
    </message>
    <message>
        <source>Running requests come to their end, then Shoal starts again…</source>
        <translation>Les requêtes en cours se terminent, puis Shoal redémarre…</translation>
    </message>
    <message>
        <source>S&amp;how it</source>
        <translation>&amp;Afficher</translation>
    </message>
    <message>
        <source>S&amp;ystem prompt</source>
        <translation>Prompt s&amp;ystème</translation>
    </message>
    <message>
        <source>Sa&amp;ve results…</source>
        <translation>Enre&amp;gistrer les résultats…</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>Échantillonnage</translation>
    </message>
    <message>
        <source>Save the archive</source>
        <translation>Enregistrer l’archive</translation>
    </message>
    <message>
        <source>Save the results</source>
        <translation>Enregistrer les résultats</translation>
    </message>
    <message>
        <source>Saved as {path}.</source>
        <translation>Enregistré sous {path}.</translation>
    </message>
    <message>
        <source>Search chats</source>
        <translation>Chercher</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>Graine</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>Envoyer</translation>
    </message>
    <message>
        <source>Send the message</source>
        <translation>Envoyer le message</translation>
    </message>
    <message>
        <source>Sent</source>
        <translation>Envoyé</translation>
    </message>
    <message>
        <source>Served in all</source>
        <translation>Servis au total</translation>
    </message>
    <message>
        <source>Served since the start</source>
        <translation>Servis depuis le démarrage</translation>
    </message>
    <message>
        <source>Served today</source>
        <translation>Servis aujourd’hui</translation>
    </message>
    <message>
        <source>Serving all {count} blocks of {model}</source>
        <translation>Sert les {count} blocs de {model}</translation>
    </message>
    <message>
        <source>Serving blocks {span} of {model}</source>
        <translation>Sert les blocs {span} de {model}</translation>
    </message>
    <message>
        <source>Serving {model}</source>
        <translation>Sert {model}</translation>
    </message>
    <message>
        <source>Sessions now</source>
        <translation>Sessions en cours</translation>
    </message>
    <message>
        <source>Setti&amp;ngs</source>
        <translation>&amp;Réglages</translation>
    </message>
    <message>
        <source>Setting up the engine</source>
        <translation>Installation du moteur</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Réglages</translation>
    </message>
    <message>
        <source>Settings of this chat</source>
        <translation>Réglages de cette discussion</translation>
    </message>
    <message>
        <source>Sho&amp;w results</source>
        <translation>&amp;Voir les résultats</translation>
    </message>
    <message>
        <source>Shoal batches</source>
        <translation>Shoal – Lots</translation>
    </message>
    <message>
        <source>Shoal cannot look for new versions, because this build has no release key: get them where you got this one.</source>
        <translation>Shoal ne peut pas chercher de nouvelles versions, car cette version ne contient pas de clé de publication : prenez-les là où vous avez obtenu celle-ci.</translation>
    </message>
    <message>
        <source>Shoal cannot serve</source>
        <translation>Shoal ne peut pas servir</translation>
    </message>
    <message>
        <source>Shoal cannot write to {folder} ({reason}). Free space or correct its rights.</source>
        <translation>Shoal ne peut pas écrire dans {folder} ({reason}). Libérez de la place ou corrigez les droits.</translation>
    </message>
    <message>
        <source>Shoal chat</source>
        <translation>Shoal – Discussion</translation>
    </message>
    <message>
        <source>Shoal dashboard</source>
        <translation>Shoal – Tableau de bord</translation>
    </message>
    <message>
        <source>Shoal measures plain steps first</source>
        <translation>Shoal mesure d’abord des pas sans ébauche</translation>
    </message>
    <message>
        <source>Shoal runs a large language model on several computers at once. Each holds some of its layers, called blocks, and hands its results on to the next. Yours can hold some, too.</source>
        <translation>Shoal fait fonctionner un grand modèle de langue sur plusieurs ordinateurs à la fois. Chacun héberge quelques-unes de ses couches, appelées blocs, et passe ses résultats au suivant. Le vôtre aussi peut en héberger.</translation>
    </message>
    <message>
        <source>Shoal settings</source>
        <translation>Shoal – Réglages</translation>
    </message>
    <message>
        <source>Shoal {version} did not start, so this version runs again.</source>
        <translation>Shoal {version} n’a pas démarré ; cette version fonctionne donc de nouveau.</translation>
    </message>
    <message>
        <source>Shoal {version} is fetched and its signature is right. To install it, run this in a terminal, then start Shoal again:</source>
        <translation>Shoal {version} est téléchargé et sa signature est juste. Pour l’installer, exécutez ceci dans un terminal, puis redémarrez Shoal :</translation>
    </message>
    <message>
        <source>Shoal {version} is installed and runs after the next start. If it does not work, this version runs again by itself.</source>
        <translation>Shoal {version} est installé et fonctionnera au prochain démarrage. S’il ne marche pas, cette version reprendra d’elle-même.</translation>
    </message>
    <message>
        <source>Shoal {version} is put beside this version…</source>
        <translation>Shoal {version} est installé à côté de cette version…</translation>
    </message>
    <message>
        <source>Shoal {version} is there.</source>
        <translation>Shoal {version} est disponible.</translation>
    </message>
    <message>
        <source>Shoal's Linux runs under WSL version 1, which its engine cannot use; start Shoal's setup again, which changes this to version 2.</source>
        <translation>Le Linux de Shoal tourne sous WSL version 1, que le moteur ne peut utiliser ; relancez l'installation de Shoal, qui passera à la version 2.</translation>
    </message>
    <message>
        <source>Shoal's engine needs the Windows Subsystem for Linux (WSL), which is not turned on; start Shoal's setup again, which turns it on if you agree.</source>
        <translation>Le moteur de Shoal a besoin du sous-système Windows pour Linux (WSL), qui n'est pas activé ; relancez l'installation de Shoal, qui l'activera si vous êtes d'accord.</translation>
    </message>
    <message>
        <source>Shoal: setup</source>
        <translation>Shoal : installation</translation>
    </message>
    <message>
        <source>Short answers, summaries and rewriting, in English.</source>
        <translation>Réponses courtes, résumés et reformulations, en anglais.</translation>
    </message>
    <message>
        <source>Show all</source>
        <translation>Tout afficher</translation>
    </message>
    <message>
        <source>Show the list of chats</source>
        <translation>Afficher la liste des discussions</translation>
    </message>
    <message>
        <source>Show the list of chats (Ctrl+B)</source>
        <translation>Afficher la liste des discussions (Ctrl+B)</translation>
    </message>
    <message>
        <source>Show the version after</source>
        <translation>Afficher la version suivante</translation>
    </message>
    <message>
        <source>Show the version before</source>
        <translation>Afficher la version précédente</translation>
    </message>
    <message>
        <source>Show the whole message</source>
        <translation>Afficher tout le message</translation>
    </message>
    <message>
        <source>So many of the {count} blocks fit; the swarm says which it needs most.</source>
        <translation>Voilà combien des {count} blocs tiennent ; l’essaim dira desquels il a le plus besoin.</translation>
    </message>
    <message>
        <source>Some blocks were served by nobody; now all are.</source>
        <translation>Certains blocs n’étaient servis par personne ; maintenant, tous le sont.</translation>
    </message>
    <message>
        <source>Some rows cannot be asked</source>
        <translation>Certaines lignes sont inutilisables</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Vitesse</translation>
    </message>
    <message>
        <source>Start Shoal when I &amp;log in</source>
        <translation>Lancer Shoal à l’ouverture de &amp;session</translation>
    </message>
    <message>
        <source>Starting the engine…</source>
        <translation>Démarrage du moteur…</translation>
    </message>
    <message>
        <source>Starting.</source>
        <translation>Démarrage.</translation>
    </message>
    <message>
        <source>State</source>
        <translation>État</translation>
    </message>
    <message>
        <source>Step aside for games and full-screen programs</source>
        <translation>Laisser la place aux jeux et aux programmes en plein écran</translation>
    </message>
    <message>
        <source>Step aside for these programs</source>
        <translation>Laisser la place à ces programmes</translation>
    </message>
    <message>
        <source>Step aside when less GPU memory is free than</source>
        <translation>Laisser la place quand la mémoire GPU libre est inférieure à</translation>
    </message>
    <message>
        <source>Step {n} of 3</source>
        <translation>Étape {n} sur 3</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Arrêter</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>Arrêter la réponse</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>Arrêtée</translation>
    </message>
    <message>
        <source>Stopping…</source>
        <translation>Arrêt…</translation>
    </message>
    <message>
        <source>Strangers' computers hold parts of the model, and each on the way of a message can read it.</source>
        <translation>Les ordinateurs d’inconnus hébergent des parties du modèle ; chacun de ceux par où passe un message peut le lire.</translation>
    </message>
    <message>
        <source>Such as http://proxy:3128. Empty: as the system says. What goes between the swarm's computers passes no proxy.</source>
        <translation>Par exemple http://proxy:3128. Vide : comme le dit le système. Ce qui passe entre les ordinateurs de l’essaim n’emprunte aucun proxy.</translation>
    </message>
    <message>
        <source>Summarize in one sentence: {text}, with a column's name in braces</source>
        <translation>Résumez en une phrase : {text}, avec le nom d’une colonne entre accolades</translation>
    </message>
    <message>
        <source>Swarm</source>
        <translation>Essaim</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>Prompt système</translation>
    </message>
    <message>
        <source>System prompt and sampling (Ctrl+,)</source>
        <translation>Prompt système et échantillonnage (Ctrl+,)</translation>
    </message>
    <message>
        <source>Table (*.csv)</source>
        <translation>Tableau (*.csv)</translation>
    </message>
    <message>
        <source>Table (CSV)</source>
        <translation>Tableau (CSV)</translation>
    </message>
    <message>
        <source>Table with {n} column|Table with {n} columns</source>
        <translation>Tableau à {n} colonne|Tableau à {n} colonnes</translation>
    </message>
    <message>
        <source>Tables, texts and lines of JSON (*.csv *.tsv *.txt *.jsonl *.ndjson)</source>
        <translation>Tableaux, textes et lignes JSON (*.csv *.tsv *.txt *.jsonl *.ndjson)</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Température</translation>
    </message>
    <message>
        <source>Text follows a closing quote ("); double each quote that is part of the text.</source>
        <translation>Du texte suit un guillemet fermant (") ; doublez chaque guillemet qui fait partie du texte.</translation>
    </message>
    <message>
        <source>Text, one prompt on each line</source>
        <translation>Texte, un prompt par ligne</translation>
    </message>
    <message>
        <source>That is not measured yet.</source>
        <translation>Ce n’est pas encore mesuré.</translation>
    </message>
    <message>
        <source>That is over, so Shoal resumes soon.</source>
        <translation>C’est terminé ; Shoal reprend bientôt.</translation>
    </message>
    <message>
        <source>The Linux that Shoal's engine runs in is gone from WSL; start Shoal's setup again, which puts it back.</source>
        <translation>Le Linux où tourne le moteur de Shoal n'est plus dans WSL ; relancez l'installation de Shoal, qui l'y remettra.</translation>
    </message>
    <message>
        <source>The Windows Subsystem for Linux cannot start, because virtualisation is turned off; turn on VT-x or AMD-V (SVM) in the computer's firmware settings and the Virtual Machine Platform in Windows' features, then start Shoal again.</source>
        <translation>Le sous-système Windows pour Linux ne peut démarrer, car la virtualisation est désactivée ; activez VT-x ou AMD-V (SVM) dans les réglages du micrologiciel et la plateforme de machine virtuelle dans les fonctionnalités de Windows, puis relancez Shoal.</translation>
    </message>
    <message>
        <source>The Windows Subsystem for Linux does not answer; restart the computer, then start Shoal again.</source>
        <translation>Le sous-système Windows pour Linux ne répond pas ; redémarrez l'ordinateur, puis relancez Shoal.</translation>
    </message>
    <message>
        <source>The Windows Subsystem for Linux failed and said “{detail}”; restart the computer, and start Shoal's setup again if that does not help.</source>
        <translation>Le sous-système Windows pour Linux a échoué et a dit « {detail} » ; redémarrez l'ordinateur, et relancez l'installation de Shoal si cela n'aide pas.</translation>
    </message>
    <message>
        <source>The Windows Subsystem for Linux has no kernel for version 2; run `wsl --update` in a terminal, then start Shoal's setup again.</source>
        <translation>Le sous-système Windows pour Linux n'a pas de noyau pour la version 2 ; lancez `wsl --update` dans un terminal, puis relancez l'installation de Shoal.</translation>
    </message>
    <message>
        <source>The Windows Subsystem for Linux is installed but works only after a restart; restart the computer (restart, not shut down).</source>
        <translation>Le sous-système Windows pour Linux est installé mais ne fonctionnera qu'après un redémarrage ; redémarrez l'ordinateur (redémarrer, et non arrêter).</translation>
    </message>
    <message>
        <source>The compute process crashed; starting again in {seconds} s.</source>
        <translation>Le processus de calcul s’est arrêté ; nouveau départ dans {seconds} s.</translation>
    </message>
    <message>
        <source>The connection broke before the answer ended.</source>
        <translation>La connexion s’est rompue avant la fin de la réponse.</translation>
    </message>
    <message>
        <source>The copy cannot be written ({reason}); choose another folder.</source>
        <translation>La copie ne peut pas être écrite ({reason}) ; choisissez un autre dossier.</translation>
    </message>
    <message>
        <source>The copy of {peer} is in {file}.</source>
        <translation>La copie de {peer} est dans {file}.</translation>
    </message>
    <message>
        <source>The disk that Shoal's Linux is on is full; free some space, then try again.</source>
        <translation>Le disque où se trouve le Linux de Shoal est plein ; libérez de la place, puis réessayez.</translation>
    </message>
    <message>
        <source>The engine answered with an error ({code}).</source>
        <translation>Le moteur a répondu par une erreur ({code}).</translation>
    </message>
    <message>
        <source>The engine could not be set up</source>
        <translation>Le moteur n’a pas pu être installé</translation>
    </message>
    <message>
        <source>The engine does not answer. It may be restarting; try again in a moment.</source>
        <translation>Le moteur ne répond pas. Il redémarre peut-être ; réessayez dans un instant.</translation>
    </message>
    <message>
        <source>The engine does not answer; batches go on when it runs again.</source>
        <translation>Le moteur ne répond pas ; les lots continueront quand il fonctionnera à nouveau.</translation>
    </message>
    <message>
        <source>The engine does not answer; wait until it runs again.</source>
        <translation>Le moteur ne répond pas ; attendez qu’il fonctionne à nouveau.</translation>
    </message>
    <message>
        <source>The engine does not answer; what it wrote last is in the folder.</source>
        <translation>Le moteur ne répond pas ; ce qu’il a écrit en dernier est dans le dossier.</translation>
    </message>
    <message>
        <source>The engine failed (exit code {code}).</source>
        <translation>Le moteur a échoué (code de sortie {code}).</translation>
    </message>
    <message>
        <source>The engine is not ready yet.</source>
        <translation>Le moteur n’est pas encore prêt.</translation>
    </message>
    <message>
        <source>The engine is not ready yet. Try again in a moment.</source>
        <translation>Le moteur n’est pas encore prêt. Réessayez dans un instant.</translation>
    </message>
    <message>
        <source>The engine is not running</source>
        <translation>Le moteur est arrêté</translation>
    </message>
    <message>
        <source>The engine sent an answer that cannot be read.</source>
        <translation>La réponse du moteur est illisible.</translation>
    </message>
    <message>
        <source>The engine sent an answer that cannot be read; it may be newer than this window. Start Shoal again.</source>
        <translation>La réponse du moteur est illisible ; il est peut-être plus récent que cette fenêtre. Relancez Shoal.</translation>
    </message>
    <message>
        <source>The engine that was running has ended.</source>
        <translation>Le moteur qui fonctionnait s’est arrêté.</translation>
    </message>
    <message>
        <source>The engine was asked to end.</source>
        <translation>Il a été demandé au moteur de s’arrêter.</translation>
    </message>
    <message>
        <source>The engine was ended by the system.</source>
        <translation>Le système a mis fin au moteur.</translation>
    </message>
    <message>
        <source>The engine's access token cannot be read.</source>
        <translation>Le jeton d’accès du moteur est illisible.</translation>
    </message>
    <message>
        <source>The engine's log</source>
        <translation>Le journal du moteur</translation>
    </message>
    <message>
        <source>The entry for the login cannot be changed ({reason}).</source>
        <translation>L’entrée d’ouverture de session ne peut pas être modifiée ({reason}).</translation>
    </message>
    <message>
        <source>The extension &lt;a href="{url}"&gt;AppIndicator and KStatusNotifierItem Support&lt;/a&gt; gives it a place in GNOME's top bar.</source>
        <translation>L’extension &lt;a href="{url}"&gt;AppIndicator and KStatusNotifierItem Support&lt;/a&gt; lui donne une place dans la barre supérieure de GNOME.</translation>
    </message>
    <message>
        <source>The failed rows of “{name}” are asked again.</source>
        <translation>Les lignes en échec de « {name} » sont réessayées.</translation>
    </message>
    <message>
        <source>The fastest pipeline of all {nodes} nodes covers every block.</source>
        <translation>Le pipeline le plus rapide des {nodes} nœuds couvre chaque bloc.</translation>
    </message>
    <message>
        <source>The fastest pipeline of all {nodes} nodes is {percent}% faster than what there is.</source>
        <translation>Le pipeline le plus rapide des {nodes} nœuds est {percent} % plus rapide que l’actuel.</translation>
    </message>
    <message>
        <source>The first line names the column {column} twice; give each column its own name.</source>
        <translation>La première ligne nomme deux fois la colonne {column} ; donnez à chaque colonne son propre nom.</translation>
    </message>
    <message>
        <source>The first row, as it will be asked.|The first {n} rows, as they will be asked.</source>
        <translation>La première ligne, telle qu’elle ira au modèle.|Les {n} premières lignes, telles qu’elles iront au modèle.</translation>
    </message>
    <message>
        <source>The first rows</source>
        <translation>Les premières lignes</translation>
    </message>
    <message>
        <source>The folder of a smaller model of the same family, or of one that shoal draft train has made. Empty: one that is at hand.</source>
        <translation>Le dossier d’un modèle plus petit de la même famille, ou d’un modèle fait par shoal draft train. Vide : celui qui est à disposition.</translation>
    </message>
    <message>
        <source>The input has more than {n} rows; split it into several.</source>
        <translation>L’entrée a plus de {n} lignes ; divisez-la en plusieurs.</translation>
    </message>
    <message>
        <source>The input has no rows; write one prompt or request on each line.</source>
        <translation>L’entrée n’a aucune ligne ; écrivez un prompt ou une requête par ligne.</translation>
    </message>
    <message>
        <source>The input is not text (it holds bytes that no text has); save it as JSONL, CSV or plain text first.</source>
        <translation>L’entrée n’est pas du texte (elle contient des octets qu’aucun texte n’a) ; enregistrez-la d’abord en JSONL, CSV ou texte brut.</translation>
    </message>
    <message>
        <source>The least served block becomes {percent}% faster by one move.</source>
        <translation>Le bloc le moins servi gagne {percent} % de vitesse en un déplacement.</translation>
    </message>
    <message>
        <source>The least served block becomes {percent}% faster by {moves} moves.</source>
        <translation>Le bloc le moins servi gagne {percent} % de vitesse en {moves} déplacements.</translation>
    </message>
    <message>
        <source>The line has no request: give it a body with messages, or give a template for its other fields.</source>
        <translation>La ligne ne contient pas de requête : donnez-lui un body avec messages, ou un modèle de prompt pour ses autres champs.</translation>
    </message>
    <message>
        <source>The line holds bytes that are not text in this file's encoding; save it as UTF-8.</source>
        <translation>La ligne contient des octets qui ne sont pas du texte dans l’encodage de ce fichier ; enregistrez-le en UTF-8.</translation>
    </message>
    <message>
        <source>The line is longer than {n} million characters; split it, or leave it out.</source>
        <translation>La ligne dépasse {n} millions de caractères ; divisez-la, ou laissez-la de côté.</translation>
    </message>
    <message>
        <source>The line is not valid JSON: {reason} at character {place}.</source>
        <translation>La ligne n’est pas du JSON valide : {reason} au caractère {place}.</translation>
    </message>
    <message>
        <source>The line must be a JSON object, {{…}}, or a prompt in quotes: "…".</source>
        <translation>La ligne doit être un objet JSON, {{…}}, ou un prompt entre guillemets : "…".</translation>
    </message>
    <message>
        <source>The list of models comes when the engine is ready.</source>
        <translation>La liste des modèles arrive dès que le moteur est prêt.</translation>
    </message>
    <message>
        <source>The log</source>
        <translation>Le journal</translation>
    </message>
    <message>
        <source>The log before</source>
        <translation>Le journal précédent</translation>
    </message>
    <message>
        <source>The log is empty.</source>
        <translation>Le journal est vide.</translation>
    </message>
    <message>
        <source>The model is downloaded when you begin, if it is not on this computer.</source>
        <translation>Le modèle est téléchargé quand vous commencez, s’il n’est pas sur cet ordinateur.</translation>
    </message>
    <message>
        <source>The model runs on this computer alone: your messages do not leave it.</source>
        <translation>Le modèle fonctionne uniquement sur cet ordinateur : vos messages n’en sortent pas.</translation>
    </message>
    <message>
        <source>The newest lines, without names, addresses and keys. What you ask is never logged.</source>
        <translation>Les lignes les plus récentes, sans noms, adresses ni clés. Ce que vous demandez n’est jamais journalisé.</translation>
    </message>
    <message>
        <source>The newest lines; the archive holds all of them.</source>
        <translation>Les lignes les plus récentes ; l’archive les contient toutes.</translation>
    </message>
    <message>
        <source>The numbers come as soon as the engine answers.</source>
        <translation>Les chiffres arrivent dès que le moteur répond.</translation>
    </message>
    <message>
        <source>The part that computes is fetched once, in the build that fits this computer. Nothing is installed outside of the folder below.</source>
        <translation>La partie qui calcule est téléchargée une fois, dans la version qui convient à cet ordinateur. Rien n’est installé en dehors du dossier ci-dessous.</translation>
    </message>
    <message>
        <source>The picture comes as soon as it is known who holds which blocks.</source>
        <translation>L’image arrive dès que l’on sait qui héberge quels blocs.</translation>
    </message>
    <message>
        <source>The pipeline now</source>
        <translation>Le pipeline en ce moment</translation>
    </message>
    <message>
        <source>The prompt is empty; fill in the row, or leave it out.</source>
        <translation>Le prompt est vide ; remplissez la ligne, ou laissez-la de côté.</translation>
    </message>
    <message>
        <source>The row has no value for {column} of the template; add it, or leave the row out.</source>
        <translation>La ligne n’a pas de valeur pour {column} du prompt ; ajoutez-la, ou laissez la ligne de côté.</translation>
    </message>
    <message>
        <source>The row has no {column}; add one, or give a template.</source>
        <translation>La ligne n’a pas de {column} ; ajoutez-en un, ou écrivez un prompt avec des colonnes.</translation>
    </message>
    <message>
        <source>The row has {values} values, but the first line names {columns} columns; put quotes around a value that holds the delimiter, or fill in what is missing.</source>
        <translation>La ligne a {values} valeurs, mais la première ligne nomme {columns} colonnes ; mettez entre guillemets une valeur qui contient le séparateur, ou complétez ce qui manque.</translation>
    </message>
    <message>
        <source>The settings</source>
        <translation>Les réglages</translation>
    </message>
    <message>
        <source>The settings fix them.</source>
        <translation>Les réglages les fixent.</translation>
    </message>
    <message>
        <source>The setup cannot be copied to {folder} ({reason}); free some space there and try again.</source>
        <translation>Impossible de copier le programme d'installation dans {folder} ({reason}) ; libérez de la place à cet endroit et réessayez.</translation>
    </message>
    <message>
        <source>The setup of Shoal {version} is fetched and its signature is right. Start it to go over to the new version.</source>
        <translation>L’installateur de Shoal {version} est téléchargé et sa signature est juste. Lancez-le pour passer à la nouvelle version.</translation>
    </message>
    <message>
        <source>The setup was not started, because it is no longer the file that was signed; quit Shoal, start it again and install the new version once more, which fetches it anew.</source>
        <translation>L'installateur n'a pas été lancé, car ce n'est plus le fichier qui a été signé ; quittez Shoal, relancez-le et installez à nouveau la nouvelle version, qui sera récupérée de nouveau.</translation>
    </message>
    <message>
        <source>The swarm checks several of them at a time. Answers stay the same.</source>
        <translation>L’essaim en vérifie plusieurs à la fois. Les réponses restent les mêmes.</translation>
    </message>
    <message>
        <source>The swarm needs blocks {span} most.</source>
        <translation>L’essaim a surtout besoin des blocs {span}.</translation>
    </message>
    <message>
        <source>The system and versions</source>
        <translation>Le système et les versions</translation>
    </message>
    <message>
        <source>The table is empty; its first line must name the columns.</source>
        <translation>Le tableau est vide ; sa première ligne doit nommer les colonnes.</translation>
    </message>
    <message>
        <source>The template asks for {asked}, but no column has this name; write one of those that there are: {columns}.</source>
        <translation>Le prompt demande {asked}, mais aucune colonne ne porte ce nom ; écrivez l’une de celles qui existent : {columns}.</translation>
    </message>
    <message>
        <source>The template asks for {asked}, but no column has this name; write {column} if you mean that column.</source>
        <translation>Le prompt demande {asked}, mais aucune colonne ne porte ce nom ; écrivez {column} si vous pensez à cette colonne.</translation>
    </message>
    <message>
        <source>The token is the key to this engine: give it to no one, and to no website.</source>
        <translation>Le jeton est la clé de ce moteur : ne le donnez à personne, ni à aucun site web.</translation>
    </message>
    <message>
        <source>The whole model fits.</source>
        <translation>Le modèle entier tient.</translation>
    </message>
    <message>
        <source>There are no batches yet.</source>
        <translation>Il n’y a pas encore de lot.</translation>
    </message>
    <message>
        <source>There is no newer version.</source>
        <translation>Il n’y a pas de version plus récente.</translation>
    </message>
    <message>
        <source>There is no pipeline to draw now: {headline}.</source>
        <translation>Aucun pipeline à dessiner pour l’instant : {headline}.</translation>
    </message>
    <message>
        <source>There is nothing to show while the engine does not run.</source>
        <translation>Il n’y a rien à montrer tant que le moteur est arrêté.</translation>
    </message>
    <message>
        <source>These hold when the engine starts next: {names}.</source>
        <translation>Pris en compte au prochain démarrage du moteur : {names}.</translation>
    </message>
    <message>
        <source>Thinks before it answers; code, mathematics, many languages.</source>
        <translation>Réfléchit avant de répondre ; code, mathématiques, nombreuses langues.</translation>
    </message>
    <message>
        <source>This app</source>
        <translation>Cette application</translation>
    </message>
    <message>
        <source>This comes as soon as the engine answers.</source>
        <translation>Cela arrive dès que le moteur répond.</translation>
    </message>
    <message>
        <source>This computer</source>
        <translation>Cet ordinateur</translation>
    </message>
    <message>
        <source>This computer has room for it.|The {n} computers that are known have room for it.</source>
        <translation>Cet ordinateur a assez de place.|Les {n} ordinateurs connus ont assez de place.</translation>
    </message>
    <message>
        <source>This computer's clock is {seconds} s ahead of the swarm's, so others ignore it; switch on automatic time in the system settings.</source>
        <translation>L’horloge de cet ordinateur avance de {seconds} s sur celle de l’essaim, si bien que les autres l’ignorent ; activez l’heure automatique dans les réglages du système.</translation>
    </message>
    <message>
        <source>This computer's clock is {seconds} s behind the swarm's, so others ignore it; switch on automatic time in the system settings.</source>
        <translation>L’horloge de cet ordinateur retarde de {seconds} s sur celle de l’essaim, si bien que les autres l’ignorent ; activez l’heure automatique dans les réglages du système.</translation>
    </message>
    <message>
        <source>This connection is metered</source>
        <translation>Cette connexion est limitée</translation>
    </message>
    <message>
        <source>This desktop shows no tray, so Shoal lives in this window and ends when it is closed.</source>
        <translation>Ce bureau n’a pas de zone de notification ; Shoal vit donc dans cette fenêtre et s’arrête quand elle est fermée.</translation>
    </message>
    <message>
        <source>This engine holds no blocks; it only uses the swarm.</source>
        <translation>Ce moteur n’héberge aucun bloc ; il ne fait qu’utiliser l’essaim.</translation>
    </message>
    <message>
        <source>This holds when Shoal is started again.</source>
        <translation>Cela prendra effet au prochain lancement de Shoal.</translation>
    </message>
    <message>
        <source>This is Shoal {version}</source>
        <translation>Voici Shoal {version}</translation>
    </message>
    <message>
        <source>This node is in no swarm, so it holds what fits.</source>
        <translation>Ce nœud n’est dans aucun essaim ; il héberge ce qui tient.</translation>
    </message>
    <message>
        <source>This node is who the copy was.</source>
        <translation>Ce nœud est maintenant celui de la copie.</translation>
    </message>
    <message>
        <source>This one runs from a folder of yours: bring it up to date as you made it.</source>
        <translation>Celui-ci fonctionne depuis un dossier à vous : mettez-le à jour comme vous l’avez créé.</translation>
    </message>
    <message>
        <source>Time left</source>
        <translation>Temps restant</translation>
    </message>
    <message>
        <source>To apply this, the stage starts again, which takes seconds.</source>
        <translation>Pour cela, l’étape redémarre, ce qui prend quelques secondes.</translation>
    </message>
    <message>
        <source>To download</source>
        <translation>À télécharger</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Tokens</translation>
    </message>
    <message>
        <source>Tokens served</source>
        <translation>Tokens servis</translation>
    </message>
    <message>
        <source>Tokens used</source>
        <translation>Tokens utilisés</translation>
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
        <translation>Réessayer</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rétablir</translation>
    </message>
    <message>
        <source>Upload</source>
        <translation>Débit montant</translation>
    </message>
    <message>
        <source>Use</source>
        <translation>Utiliser</translation>
    </message>
    <message>
        <source>Use {name}</source>
        <translation>Utiliser {name}</translation>
    </message>
    <message>
        <source>Used in all</source>
        <translation>Utilisés au total</translation>
    </message>
    <message>
        <source>Used since the start</source>
        <translation>Utilisés depuis le démarrage</translation>
    </message>
    <message>
        <source>Used today</source>
        <translation>Utilisés aujourd’hui</translation>
    </message>
    <message>
        <source>VRAM</source>
        <translation>de VRAM</translation>
    </message>
    <message>
        <source>Version {place}</source>
        <translation>Version {place}</translation>
    </message>
    <message>
        <source>WSL has a distribution called Shoal already, which this setup did not make; rename or remove it, then start Shoal's setup again.</source>
        <translation>WSL a déjà une distribution appelée Shoal, que cette installation n'a pas créée ; renommez-la ou supprimez-la, puis relancez l'installation de Shoal.</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>En attente</translation>
    </message>
    <message>
        <source>Waiting for its turn</source>
        <translation>En attente de son tour</translation>
    </message>
    <message>
        <source>Waiting for the first token…</source>
        <translation>En attente du premier token…</translation>
    </message>
    <message>
        <source>Way</source>
        <translation>Chemin</translation>
    </message>
    <message>
        <source>Welcome to Shoal</source>
        <translation>Bienvenue dans Shoal</translation>
    </message>
    <message>
        <source>What I hold</source>
        <translation>Ce que j’héberge</translation>
    </message>
    <message>
        <source>What Shoal is</source>
        <translation>Ce qu’est Shoal</translation>
    </message>
    <message>
        <source>What Shoal may take of this computer at most.</source>
        <translation>Ce que Shoal peut prendre au plus de cet ordinateur.</translation>
    </message>
    <message>
        <source>What is asked</source>
        <translation>Demande</translation>
    </message>
    <message>
        <source>What is not ticked is as the model's makers recommend.</source>
        <translation>Ce qui n’est pas coché suit les recommandations des auteurs du modèle.</translation>
    </message>
    <message>
        <source>What is wrong with the input</source>
        <translation>Ce qui ne va pas dans l’entrée</translation>
    </message>
    <message>
        <source>What opens invites cannot be changed ({reason}).</source>
        <translation>Ce qui ouvre les invitations ne peut pas être changé ({reason}).</translation>
    </message>
    <message>
        <source>What others can see: every computer of a chain can read your text and the answer. Use a private swarm, or this computer alone, for anything sensitive.</source>
        <translation>Ce que les autres peuvent voir : chaque ordinateur d’une chaîne peut lire votre texte et la réponse. Pour tout ce qui est sensible, utilisez un essaim privé, ou cet ordinateur seul.</translation>
    </message>
    <message>
        <source>What the chosen file holds</source>
        <translation>Contenu du fichier choisi</translation>
    </message>
    <message>
        <source>What the engine says of its {name}</source>
        <translation>Ce que le moteur en dit : {name}</translation>
    </message>
    <message>
        <source>What was downloaded is kept, so trying again goes on from there.</source>
        <translation>Ce qui a été téléchargé est conservé : un nouvel essai reprend à cet endroit.</translation>
    </message>
    <message>
        <source>What was measured of this machine</source>
        <translation>Ce qui a été mesuré sur cette machine</translation>
    </message>
    <message>
        <source>What would you like to know?</source>
        <translation>Que voulez-vous savoir ?</translation>
    </message>
    <message>
        <source>What your computer would give</source>
        <translation>Ce que votre ordinateur donnerait</translation>
    </message>
    <message>
        <source>When Shoal gives to its swarm, and when it steps aside.</source>
        <translation>Quand Shoal donne à son essaim, et quand il laisse la place.</translation>
    </message>
    <message>
        <source>When something is wrong, this archive helps others to find out why. It holds these files and nothing else: no chats, and without names, addresses, keys and paths of yours. It stays on this computer until you give it to somebody.</source>
        <translation>Quand quelque chose ne va pas, cette archive aide d’autres personnes à comprendre pourquoi. Elle contient ces fichiers et rien d’autre : aucune discussion, et ni vos noms, ni vos adresses, clés ou chemins. Elle reste sur cet ordinateur tant que vous ne la donnez à personne.</translation>
    </message>
    <message>
        <source>Who can reach me</source>
        <translation>Qui peut me joindre</translation>
    </message>
    <message>
        <source>Who holds what</source>
        <translation>Qui héberge quoi</translation>
    </message>
    <message>
        <source>Why these</source>
        <translation>Pourquoi ceux-ci</translation>
    </message>
    <message>
        <source>Windows did not start {file}; start it yourself.</source>
        <translation>Windows n'a pas lancé {file} ; lancez-le vous-même.</translation>
    </message>
    <message>
        <source>With this node, the fastest pipeline has blocks {span} here.</source>
        <translation>Avec ce nœud, le pipeline le plus rapide a ici les blocs {span}.</translation>
    </message>
    <message>
        <source>Words in titles and messages (Ctrl+K)</source>
        <translation>Mots des titres et des messages (Ctrl+K)</translation>
    </message>
    <message>
        <source>Writing {model}</source>
        <translation>Écriture de {model}</translation>
    </message>
    <message>
        <source>Yielding because other programs need the GPU's memory.</source>
        <translation>Laisse la place, car d’autres programmes ont besoin de la mémoire du GPU.</translation>
    </message>
    <message>
        <source>Yielding because the computer runs on its battery.</source>
        <translation>Laisse la place, car l’ordinateur est sur batterie.</translation>
    </message>
    <message>
        <source>Yielding because the connection costs by the byte.</source>
        <translation>Laisse la place, car la connexion est facturée au volume.</translation>
    </message>
    <message>
        <source>Yielding to a game that has asked for GameMode.</source>
        <translation>Laisse la place à un jeu qui a demandé le GameMode.</translation>
    </message>
    <message>
        <source>Yielding to a program, which fills the screen.</source>
        <translation>Laisse la place à un programme qui occupe tout l’écran.</translation>
    </message>
    <message>
        <source>Yielding to you for now</source>
        <translation>Vous laisse la place</translation>
    </message>
    <message>
        <source>Yielding to {program}, which fills the screen.</source>
        <translation>Laisse la place à {program}, qui occupe tout l’écran.</translation>
    </message>
    <message>
        <source>Yielding to {program}, which is running.</source>
        <translation>Laisse la place à {program}, qui est en cours d’exécution.</translation>
    </message>
    <message>
        <source>Yielding while you use the computer.</source>
        <translation>Laisse la place pendant que vous utilisez l’ordinateur.</translation>
    </message>
    <message>
        <source>Yielding {end}</source>
        <translation>Laisse la place {end}</translation>
    </message>
    <message>
        <source>You</source>
        <translation>Vous</translation>
    </message>
    <message>
        <source>You are a helpful assistant.</source>
        <translation>Vous êtes un assistant serviable.</translation>
    </message>
    <message>
        <source>You are writing an earlier message anew; the old one is kept.</source>
        <translation>Vous réécrivez un message précédent ; l’ancien est conservé.</translation>
    </message>
    <message>
        <source>You can type now and send later</source>
        <translation>Vous pouvez écrire maintenant et envoyer plus tard</translation>
    </message>
    <message>
        <source>You would hold {blocks}, {memory}</source>
        <translation>Vous hébergeriez {blocks}, {memory}</translation>
    </message>
    <message>
        <source>You would hold {blocks}, {memory}, {line}</source>
        <translation>Vous hébergeriez {blocks}, {memory}, {line}</translation>
    </message>
    <message>
        <source>Your conversations will be listed here.</source>
        <translation>Vos conversations apparaîtront ici.</translation>
    </message>
    <message>
        <source>Your message</source>
        <translation>Votre message</translation>
    </message>
    <message>
        <source>Your message travels through the computers that hold the model. They must read it to answer, so do not write secrets here.</source>
        <translation>Votre message passe par les ordinateurs qui hébergent le modèle. Pour répondre, ils doivent le lire : n’écrivez donc pas de secrets ici.</translation>
    </message>
    <message>
        <source>Your messages do not leave this computer.</source>
        <translation>Vos messages ne quittent pas cet ordinateur.</translation>
    </message>
    <message>
        <source>Your own work comes first. Shoal steps aside for games and full-screen programs, stays within the limits you set, and pauses whenever you say so.</source>
        <translation>Votre travail passe d’abord. Shoal laisse la place aux jeux et aux programmes en plein écran, reste dans les limites que vous fixez et se met en pause dès que vous le dites.</translation>
    </message>
    <message>
        <source>Your work first</source>
        <translation>Votre travail d’abord</translation>
    </message>
    <message>
        <source>a free one each time</source>
        <translation>un port libre à chaque fois</translation>
    </message>
    <message>
        <source>about {size}</source>
        <translation>environ {size}</translation>
    </message>
    <message>
        <source>about {time}</source>
        <translation>environ {time}</translation>
    </message>
    <message>
        <source>all {count} blocks of {model}</source>
        <translation>les {count} blocs de {model}</translation>
    </message>
    <message>
        <source>and {n} more</source>
        <translation>et {n} de plus</translation>
    </message>
    <message>
        <source>as many as fit</source>
        <translation>autant que possible</translation>
    </message>
    <message>
        <source>as much as fits</source>
        <translation>autant que possible</translation>
    </message>
    <message>
        <source>as the desktop</source>
        <translation>comme le bureau</translation>
    </message>
    <message>
        <source>as the system</source>
        <translation>comme le système</translation>
    </message>
    <message>
        <source>as the system says</source>
        <translation>comme le dit le système</translation>
    </message>
    <message>
        <source>at most {size}</source>
        <translation>au plus {size}</translation>
    </message>
    <message>
        <source>blocks {span} of {model}</source>
        <translation>les blocs {span} de {model}</translation>
    </message>
    <message>
        <source>chosen by Shoal</source>
        <translation>choisi par Shoal</translation>
    </message>
    <message>
        <source>context of {n} tokens</source>
        <translation>contexte de {n} tokens</translation>
    </message>
    <message>
        <source>custom_id {name} was used in line {line} already; give each row its own.</source>
        <translation>custom_id {name} a déjà servi à la ligne {line} ; donnez à chaque ligne le sien.</translation>
    </message>
    <message>
        <source>dark</source>
        <translation>sombres</translation>
    </message>
    <message>
        <source>direct</source>
        <translation>direct</translation>
    </message>
    <message>
        <source>direct, through both routers</source>
        <translation>direct, à travers les deux routeurs</translation>
    </message>
    <message>
        <source>do not wait for that</source>
        <translation>ne pas attendre cela</translation>
    </message>
    <message>
        <source>down</source>
        <translation>réception</translation>
    </message>
    <message>
        <source>drafts did not pay when they were tried</source>
        <translation>les ébauches n’ont rien apporté aux essais</translation>
    </message>
    <message>
        <source>drafts save time</source>
        <translation>les ébauches font gagner du temps</translation>
    </message>
    <message>
        <source>drafts take longer than they save</source>
        <translation>les ébauches prennent plus de temps qu’elles n’en font gagner</translation>
    </message>
    <message>
        <source>en</source>
        <translation>fr</translation>
    </message>
    <message>
        <source>everyone in the swarm, directly</source>
        <translation>tout l’essaim, directement</translation>
    </message>
    <message>
        <source>everyone, through {relays}. Answers are quicker if your router forwards a port to this computer.</source>
        <translation>tous, par {relays}. Les réponses sont plus rapides si votre routeur redirige un port vers cet ordinateur.</translation>
    </message>
    <message>
        <source>its input cannot be used.</source>
        <translation>son entrée est inutilisable.</translation>
    </message>
    <message>
        <source>light</source>
        <translation>claires</translation>
    </message>
    <message>
        <source>never</source>
        <translation>jamais</translation>
    </message>
    <message>
        <source>no</source>
        <translation>non</translation>
    </message>
    <message>
        <source>no draft: {reason}</source>
        <translation>sans ébauche : {reason}</translation>
    </message>
    <message>
        <source>no limit</source>
        <translation>sans limite</translation>
    </message>
    <message>
        <source>no limit down</source>
        <translation>réception sans limite</translation>
    </message>
    <message>
        <source>no limit up</source>
        <translation>envoi sans limite</translation>
    </message>
    <message>
        <source>nobody: no connections come in and no relay is free, so this computer can use the swarm but not serve it. Forward a port of your router to it.</source>
        <translation>personne : aucune connexion n’arrive et aucun relais n’est libre ; cet ordinateur peut donc utiliser l’essaim, mais pas le servir. Redirigez vers lui un port de votre routeur.</translation>
    </message>
    <message>
        <source>none now</source>
        <translation>aucun pour l’instant</translation>
    </message>
    <message>
        <source>none: solo on this computer</source>
        <translation>aucun : seul sur cet ordinateur</translation>
    </message>
    <message>
        <source>none: this computer works alone, nobody connects to it</source>
        <translation>aucun : cet ordinateur travaille seul, personne ne s’y connecte</translation>
    </message>
    <message>
        <source>not known yet</source>
        <translation>pas encore connu</translation>
    </message>
    <message>
        <source>not measured</source>
        <translation>non mesurée</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>rien</translation>
    </message>
    <message>
        <source>nothing measured</source>
        <translation>rien de mesuré</translation>
    </message>
    <message>
        <source>nothing now</source>
        <translation>rien pour l’instant</translation>
    </message>
    <message>
        <source>on this computer</source>
        <translation>sur cet ordinateur</translation>
    </message>
    <message>
        <source>one for each core</source>
        <translation>un par cœur</translation>
    </message>
    <message>
        <source>private</source>
        <translation>privé</translation>
    </message>
    <message>
        <source>programs on this computer alone</source>
        <translation>seulement les programmes de cet ordinateur</translation>
    </message>
    <message>
        <source>public</source>
        <translation>public</translation>
    </message>
    <message>
        <source>separated by {sign}</source>
        <translation>séparées par {sign}</translation>
    </message>
    <message>
        <source>served</source>
        <translation>servis</translation>
    </message>
    <message>
        <source>slowest</source>
        <translation>goulot</translation>
    </message>
    <message>
        <source>tabs</source>
        <translation>des tabulations</translation>
    </message>
    <message>
        <source>text</source>
        <translation>texte</translation>
    </message>
    <message>
        <source>the CPU, because the NVIDIA card has no working driver ({driver} or newer is needed)</source>
        <translation>le processeur, car la carte NVIDIA n’a pas de pilote qui fonctionne (il faut {driver} ou plus récent)</translation>
    </message>
    <message>
        <source>the CPU, because the NVIDIA card is too old</source>
        <translation>le processeur, car la carte NVIDIA est trop ancienne</translation>
    </message>
    <message>
        <source>the CPU, because the NVIDIA driver is too old ({driver} or newer is needed)</source>
        <translation>le processeur, car le pilote NVIDIA est trop ancien (il faut {driver} ou plus récent)</translation>
    </message>
    <message>
        <source>the CPU, because there is no NVIDIA card</source>
        <translation>le processeur, car il n’y a pas de carte NVIDIA</translation>
    </message>
    <message>
        <source>the NVIDIA card</source>
        <translation>la carte NVIDIA</translation>
    </message>
    <message>
        <source>the blocks of this computer</source>
        <translation>le calcul de cet ordinateur</translation>
    </message>
    <message>
        <source>the blocks of {node}</source>
        <translation>le calcul de {node}</translation>
    </message>
    <message>
        <source>the model</source>
        <translation>le modèle</translation>
    </message>
    <message>
        <source>the next token</source>
        <translation>le token suivant</translation>
    </message>
    <message>
        <source>the processor</source>
        <translation>le processeur</translation>
    </message>
    <message>
        <source>the way from this computer to {node}</source>
        <translation>le chemin de cet ordinateur à {node}</translation>
    </message>
    <message>
        <source>the way from {node} to this computer</source>
        <translation>le chemin de {node} à cet ordinateur</translation>
    </message>
    <message>
        <source>the way from {node} to {next}</source>
        <translation>le chemin de {node} à {next}</translation>
    </message>
    <message>
        <source>there is nothing to draft with</source>
        <translation>il n’y a rien pour ébaucher</translation>
    </message>
    <message>
        <source>this computer</source>
        <translation>cet ordinateur</translation>
    </message>
    <message>
        <source>through a relay</source>
        <translation>par un relais</translation>
    </message>
    <message>
        <source>through …{relay}</source>
        <translation>par …{relay}</translation>
    </message>
    <message>
        <source>tomorrow {time}</source>
        <translation>demain {time}</translation>
    </message>
    <message>
        <source>too few drafted tokens are right</source>
        <translation>trop peu de tokens ébauchés sont justes</translation>
    </message>
    <message>
        <source>until you resume</source>
        <translation>jusqu’à votre reprise</translation>
    </message>
    <message>
        <source>until {moment} ({left} left)</source>
        <translation>jusqu’à {moment} (encore {left})</translation>
    </message>
    <message>
        <source>up</source>
        <translation>envoi</translation>
    </message>
    <message>
        <source>up to {rate} Mbit/s down</source>
        <translation>jusqu’à {rate} Mbit/s en réception</translation>
    </message>
    <message>
        <source>up to {rate} Mbit/s up</source>
        <translation>jusqu’à {rate} Mbit/s en envoi</translation>
    </message>
    <message>
        <source>used</source>
        <translation>utilisés</translation>
    </message>
    <message>
        <source>what its driver allows</source>
        <translation>ce que permet son pilote</translation>
    </message>
    <message>
        <source>where that saves time</source>
        <translation>là où cela fait gagner du temps</translation>
    </message>
    <message>
        <source>without the first message|without the first {n} messages</source>
        <translation>sans le premier message|sans les {n} premiers messages</translation>
    </message>
    <message>
        <source>yes</source>
        <translation>oui</translation>
    </message>
    <message>
        <source>yes, for nodes that accept no connections themselves</source>
        <translation>oui, pour les nœuds qui n’acceptent pas de connexions</translation>
    </message>
    <message>
        <source>yesterday</source>
        <translation>hier</translation>
    </message>
    <message>
        <source>{day} {month}</source>
        <translation>{day} {month}</translation>
    </message>
    <message>
        <source>{device}, {free} of {total} free</source>
        <translation>{device}, {free} libres sur {total}</translation>
    </message>
    <message>
        <source>{done} of {total} answered</source>
        <translation>{done} sur {total} traitées</translation>
    </message>
    <message>
        <source>{done}, {failed}</source>
        <translation>{done}, {failed}</translation>
    </message>
    <message>
        <source>{file} cannot be read as a copy.</source>
        <translation>{file} ne peut pas être lu comme une copie.</translation>
    </message>
    <message>
        <source>{file} holds no invite: it must begin with shoal://.</source>
        <translation>{file} ne contient pas d’invitation : elle doit commencer par shoal://.</translation>
    </message>
    <message>
        <source>{folder}, {free} free</source>
        <translation>{folder}, {free} libres</translation>
    </message>
    <message>
        <source>{held} of the {count} blocks of {model}</source>
        <translation>{held} des {count} blocs de {model}</translation>
    </message>
    <message>
        <source>{model} (runs now)</source>
        <translation>{model} (en cours)</translation>
    </message>
    <message>
        <source>{model} is not on this computer yet; how much of it fits shows later.</source>
        <translation>{model} n’est pas encore sur cet ordinateur ; on verra plus tard ce qui en tient.</translation>
    </message>
    <message>
        <source>{model}: choose another</source>
        <translation>{model} : en choisir un autre</translation>
    </message>
    <message>
        <source>{name} cannot be read ({reason}).</source>
        <translation>{name} ne peut pas être lu ({reason}).</translation>
    </message>
    <message>
        <source>{name} has more than {limit}; attach the part that matters.</source>
        <translation>{name} dépasse {limit} ; joignez la partie qui compte.</translation>
    </message>
    <message>
        <source>{name} is not a text file; the model reads only text.</source>
        <translation>{name} n’est pas un fichier texte ; le modèle ne lit que du texte.</translation>
    </message>
    <message>
        <source>{needed} of {free} that are free</source>
        <translation>{needed} sur {free} disponibles</translation>
    </message>
    <message>
        <source>{n} B</source>
        <translation>{n} o</translation>
    </message>
    <message>
        <source>{n} GB</source>
        <translation>{n} Go</translation>
    </message>
    <message>
        <source>{n} KB</source>
        <translation>{n} Ko</translation>
    </message>
    <message>
        <source>{n} MB</source>
        <translation>{n} Mo</translation>
    </message>
    <message>
        <source>{n} TB</source>
        <translation>{n} To</translation>
    </message>
    <message>
        <source>{n} being answered</source>
        <translation>{n} en cours</translation>
    </message>
    <message>
        <source>{n} block|{n} blocks</source>
        <translation>{n} bloc|{n} blocs</translation>
    </message>
    <message>
        <source>{n} d</source>
        <translation>{n} j</translation>
    </message>
    <message>
        <source>{n} failed|{n} failed</source>
        <translation>{n} en échec|{n} en échec</translation>
    </message>
    <message>
        <source>{n} h</source>
        <translation>{n} h</translation>
    </message>
    <message>
        <source>{n} min</source>
        <translation>{n} min</translation>
    </message>
    <message>
        <source>{n} of the first {total} rows cannot be asked; the table says why.|{n} of the first {total} rows cannot be asked; the table says why.</source>
        <translation>{n} des {total} premières lignes est inutilisable ; le tableau dit pourquoi.|{n} des {total} premières lignes sont inutilisables ; le tableau dit pourquoi.</translation>
    </message>
    <message>
        <source>{n} of {total} rows cannot be asked|{n} of {total} rows cannot be asked</source>
        <translation>{n} ligne sur {total} est inutilisable|{n} lignes sur {total} sont inutilisables</translation>
    </message>
    <message>
        <source>{n} of {total} rows could not be asked|{n} of {total} rows could not be asked</source>
        <translation>{n} ligne sur {total} était inutilisable|{n} lignes sur {total} étaient inutilisables</translation>
    </message>
    <message>
        <source>{n} other node|{n} other nodes</source>
        <translation>{n} autre nœud|{n} autres nœuds</translation>
    </message>
    <message>
        <source>{n} read so far</source>
        <translation>{n} lues jusqu’ici</translation>
    </message>
    <message>
        <source>{n} relayed|{n} relayed</source>
        <translation>{n} par relais|{n} par relais</translation>
    </message>
    <message>
        <source>{n} relay|{n} relays</source>
        <translation>{n} relais|{n} relais</translation>
    </message>
    <message>
        <source>{n} row answered|{n} rows answered</source>
        <translation>{n} ligne traitée|{n} lignes traitées</translation>
    </message>
    <message>
        <source>{n} s</source>
        <translation>{n} s</translation>
    </message>
    <message>
        <source>{n} tokens/s</source>
        <translation>{n} tokens/s</translation>
    </message>
    <message>
        <source>{n} token|{n} tokens</source>
        <translation>{n} token|{n} tokens</translation>
    </message>
    <message>
        <source>{part} of {all}</source>
        <translation>{part} sur {all}</translation>
    </message>
    <message>
        <source>{path} cannot be written ({reason}); choose another place.</source>
        <translation>{path} ne peut pas être écrit ({reason}) ; choisissez un autre endroit.</translation>
    </message>
    <message>
        <source>{program} cannot be started. Install Shoal again.</source>
        <translation>{program} ne peut pas être lancé. Réinstallez Shoal.</translation>
    </message>
    <message>
        <source>{rate} tokens a round by looking up</source>
        <translation>{rate} tokens par tour par recherche dans le texte</translation>
    </message>
    <message>
        <source>{rate} tokens a round with a draft model</source>
        <translation>{rate} tokens par tour avec un modèle d’ébauche</translation>
    </message>
    <message>
        <source>{rate} tokens/s</source>
        <translation>{rate} tokens/s</translation>
    </message>
    <message>
        <source>{read} read, {written} written</source>
        <translation>{read} lus, {written} écrits</translation>
    </message>
    <message>
        <source>{size} more room is needed. It usually takes {n} computers that give 8 GB each.</source>
        <translation>Il manque {size}. Il faut d’ordinaire {n} ordinateurs qui donnent 8 Go chacun.</translation>
    </message>
    <message>
        <source>{span} of {count}</source>
        <translation>{span} sur {count}</translation>
    </message>
    <message>
        <source>{swarm}, {n} stage|{swarm}, {n} stages</source>
        <translation>{swarm}, {n} étape|{swarm}, {n} étapes</translation>
    </message>
    <message>
        <source>{used} of {all} tokens</source>
        <translation>{used} tokens sur {all}</translation>
    </message>
    <message>
        <source>{used} of {total} tokens in use</source>
        <translation>{used} tokens sur {total} occupés</translation>
    </message>
    <message>
        <source>{weekday} {date}, {time}</source>
        <translation>{weekday} {date}, {time}</translation>
    </message>
    <message>
        <source>{what}: {share}</source>
        <translation>{what} : {share}</translation>
    </message>
    <message>
        <source>{what}: {share} of {size}</source>
        <translation>{what} : {share} de {size}</translation>
    </message>
    <message>
        <source>“{name}” has failed: {reason}</source>
        <translation>« {name} » a échoué : {reason}</translation>
    </message>
    <message>
        <source>“{name}” is done: {what}.</source>
        <translation>« {name} » est terminé : {what}.</translation>
    </message>
    <message>
        <source>“{name}” is in the trash.</source>
        <translation>« {name} » est dans la corbeille.</translation>
    </message>
    <message>
        <source>“{name}” was cancelled.</source>
        <translation>« {name} » a été annulé.</translation>
    </message>
    <message>
        <source>“{sign}”</source>
        <translation>« {sign} »</translation>
    </message>
    <message>
        <source>“{title}” is in the trash.</source>
        <translation>« {title} » est dans la corbeille.</translation>
    </message>
</context>
</TS>
