; A stand-in for uv.exe under Wine: writes down how it was called and through which proxy, lets a script of
; this computer do the work, and ends as that did; with no-python.txt it fails and says what is in it. Built with HERE, a folder in Wine's names, and SCRIPT, in the system's.
Target amd64-unicode
Unicode true
OutFile "${OUT}"
SilentInstall silent
RequestExecutionLevel user
CRCCheck off
Section
  Delete "${HERE}\done.txt"
  FileOpen $0 "${HERE}\call.txt" w
  FileWriteUTF16LE /BOM $0 "$CMDLINE"
  FileClose $0
  ReadEnvStr $1 "HTTPS_PROXY"
  FileOpen $0 "${HERE}\proxy.txt" w
  FileWrite $0 "$1"
  FileClose $0
  IfFileExists "${HERE}\no-python.txt" 0 +8
  FileOpen $0 "${HERE}\no-python.txt" r
  FileRead $0 $1
  FileClose $0
  System::Call 'kernel32::GetStdHandle(i -11) p .r0'
  FileWrite $0 "$1$\r$\n"
  SetErrorLevel 2
  Quit
  Exec '"Z:\bin\sh" "${SCRIPT}"'
wait:
  Sleep 50
  IfFileExists "${HERE}\done.txt" 0 wait
  FileOpen $0 "${HERE}\done.txt" r
  FileRead $0 $1
  FileClose $0
  SetErrorLevel $1
SectionEnd
