; Shoal's setup for Windows. It unpacks, keeps the books of Windows (shortcuts, the list of programs) and
; shows what provision.py does; all that has to do with Python or WSL is there.
;
;   /S                  without windows: exit code 0 done, 2 failed, 3010 restart Windows and start it again
;   /AGREE=enable-wsl   the person's word for the one step that needs an administrator; others after a comma
;   /REACHABLE=yes|no   open this computer to others, or close it again
;   /DESKTOP=no         no icon on the desktop
;   /D=FOLDER           where to (last, without quotes)
;   uninstall.exe /S /KEEPDATA=yes|no
;
; Built by `python installers/build.py windows`, which defines VERSION, VERSION4, OUT, PAYLOAD and ICON.

Target amd64-unicode
Unicode true
ManifestSupportedOS Win10
ManifestDPIAware true
RequestExecutionLevel user
CRCCheck force
SetDateSave off
!ifdef FAST
  SetCompressor zlib
!else
  SetCompressor /SOLID lzma
  SetCompressorDictSize 16
!endif

!ifdef SIGN
  !finalize '${SIGN} "%1"' = 0
  !uninstfinalize '${SIGN} "%1"' = 0
!endif

!include MUI2.nsh
!include FileFunc.nsh
!include TextFunc.nsh
!include WordFunc.nsh
!include LogicLib.nsh
!include Sections.nsh
!include x64.nsh

Name "Shoal"
OutFile "${OUT}"
InstallDir "$LOCALAPPDATA\Programs\Shoal"
InstallDirRegKey HKCU "Software\Shoal" "InstallDir"
BrandingText "Shoal ${VERSION}"
SpaceTexts none  ; nearly all of it is fetched; provision.py looks at the disk
ShowInstDetails show
ShowUninstDetails show
VIProductVersion "${VERSION4}"
VIAddVersionKey /LANG=1033 "ProductName" "Shoal"
VIAddVersionKey /LANG=1033 "ProductVersion" "${VERSION}"
VIAddVersionKey /LANG=1033 "FileVersion" "${VERSION}"
VIAddVersionKey /LANG=1033 "FileDescription" "Shoal setup"
VIAddVersionKey /LANG=1033 "LegalCopyright" "Apache-2.0"

!define UNINSTALL_KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\Shoal"
!define RUN_KEY "Software\Microsoft\Windows\CurrentVersion\Run"
!define RUN_ONCE_KEY "Software\Microsoft\Windows\CurrentVersion\RunOnce"
!define STATE "$LOCALAPPDATA\shoal"
!define PYTHON "3.11"
; Runs start.py, which starts the version that is to run.
!define PROGRAM "$INSTDIR\launcher\Scripts\pythonw.exe"

Var said        ; the sentence that provision.py left
Var code        ; how it ended
Var agreed      ; what the person has agreed to, with commas between
Var options     ; our own command line
Var resuming    ; after a restart
Var repairing   ; the same version is there already
Var running     ; provision.py works
Var cancelled   ; set by the Cancel button, in the window's own thread
Var shown       ; the text that stands above the bar
Var bar         ; the window of the bar
Var reachable   ; yes or no, as the person wants it
Var icon        ; yes or no: the icon there

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_WELCOMEFINISHPAGE_BITMAP "side.bmp"
!define MUI_CUSTOMFUNCTION_ABORT OnCancel
!define MUI_CUSTOMFUNCTION_UNABORT un.OnCancel

!define MUI_PAGE_CUSTOMFUNCTION_PRE SkipWhenResuming
!define MUI_WELCOMEPAGE_TEXT "$(WELCOME)"
!insertmacro MUI_PAGE_WELCOME
!define MUI_PAGE_CUSTOMFUNCTION_PRE SkipWhenResuming
!insertmacro MUI_PAGE_DIRECTORY
!define MUI_PAGE_CUSTOMFUNCTION_PRE SkipWhenResuming
!insertmacro MUI_PAGE_COMPONENTS
!define MUI_INSTFILESPAGE_ABORTHEADER_TEXT "$(NOT_DONE)"
!define MUI_INSTFILESPAGE_ABORTHEADER_SUBTEXT "$(NOT_DONE_ABOUT)"
!insertmacro MUI_PAGE_INSTFILES
!define MUI_FINISHPAGE_RUN "${PROGRAM}"
!define MUI_FINISHPAGE_RUN_PARAMETERS "$\"$INSTDIR\start.py$\""
!define MUI_FINISHPAGE_TEXT "$(FINISHED)$\r$\n$\r$\n$said"
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!include "texts.nsh"

!macro SHARED un
; Runs provision.py with the arguments on the stack and shows how far it is; $code and $said tell the end.
Function ${un}Provision
  Exch $0
  Push $1
  Push $2
  Push $3
  Push $4
  Push $5
  Push $6
  SetDetailsPrint none
  Delete "$PLUGINSDIR\progress.txt"
  Delete "$PLUGINSDIR\result.txt"
  Delete "$PLUGINSDIR\stop"
  SetDetailsPrint both
  StrCpy $said ""
  StrCpy $shown ""
  StrCpy $cancelled 0
  StrCpy $running 1
  Call ${un}SetVariables
  FindWindow $bar "#32770" "" $HWNDPARENT
  GetDlgItem $bar $bar 1004
  GetDlgItem $1 $HWNDPARENT 2
  EnableWindow $1 1
  StrCpy $0 '"$INSTDIR\setup\uv.exe" run --no-project --managed-python --python ${PYTHON} --no-progress $0'
  ; SECURITY_ATTRIBUTES: the file may be inherited.
  System::Call '*(i 24, i 0, p 0, i 1, i 0) p .r1'
  System::Call 'kernel32::CreateFileW(w "$PLUGINSDIR\uv.txt", i 4, i 7, p r1, i 2, i 128, p 0) p .r6'
  System::Free $1
  ; STARTUPINFOW with that file as output, and PROCESS_INFORMATION.
  System::Call '*(i 104, i 0, p 0, p 0, p 0, i 0, i 0, i 0, i 0, i 0, i 0, i 0, i 0x100, i 0, i 0, p 0, p 0, p r6, p r6) p .r1'
  System::Call '*(p 0, p 0, i 0, i 0) p .r2'
  System::Call 'kernel32::CreateProcessW(p 0, w r0, p 0, p 0, i 1, i 0x08000000, p 0, p 0, p r1, p r2) i .r3'
  System::Call 'kernel32::CloseHandle(p r6)'
  System::Free $1
  ${If} $3 == 0
    System::Free $2
    StrCpy $code 1
    StrCpy $said "$(CANNOT_START)"
  ${Else}
    System::Call '*$2(p .r4, p .r5)'
    System::Free $2
    System::Call 'kernel32::CloseHandle(p r5)'
    ${Do}
      System::Call 'kernel32::WaitForSingleObject(p r4, i 300) i .r3'
      Call ${un}ShowProgress
    ${LoopWhile} $3 == 258
    System::Call 'kernel32::GetExitCodeProcess(p r4, *i .r3)'
    System::Call 'kernel32::CloseHandle(p r4)'
    StrCpy $code $3
    Call ${un}ReadResult
  ${EndIf}
  StrCpy $running 0
  GetDlgItem $1 $HWNDPARENT 2
  EnableWindow $1 0
  Pop $6
  Pop $5
  Pop $4
  Pop $3
  Pop $2
  Pop $1
  Pop $0
FunctionEnd

; uv keeps all it fetches below our folder and asks nothing of this computer's settings but its proxy.
Function ${un}SetVariables
  System::Call 'kernel32::SetEnvironmentVariableW(w "UV_PYTHON_INSTALL_DIR", w "$INSTDIR\python")'
  System::Call 'kernel32::SetEnvironmentVariableW(w "UV_CACHE_DIR", w "$INSTDIR\downloads\uv")'
  System::Call 'kernel32::SetEnvironmentVariableW(w "UV_PYTHON_INSTALL_BIN", w "0")'
  System::Call 'kernel32::SetEnvironmentVariableW(w "UV_PYTHON_INSTALL_REGISTRY", w "0")'
  System::Call 'kernel32::SetEnvironmentVariableW(w "UV_NO_CONFIG", w "1")'
  System::Call 'kernel32::SetEnvironmentVariableW(w "UV_SYSTEM_CERTS", w "1")'
  System::Call 'kernel32::SetEnvironmentVariableW(w "PYTHONPATH", p 0)'
  System::Call 'kernel32::SetEnvironmentVariableW(w "PYTHONHOME", p 0)'
  System::Call 'kernel32::SetEnvironmentVariableW(w "PYTHONDONTWRITEBYTECODE", w "1")'
  Push $0
  Push $1
  Push $2
  ReadRegDWORD $1 HKCU "Software\Microsoft\Windows\CurrentVersion\Internet Settings" "ProxyEnable"
  ReadRegStr $2 HKCU "Software\Microsoft\Windows\CurrentVersion\Internet Settings" "ProxyServer"
  ReadEnvStr $0 "HTTPS_PROXY"
  ${If} $1 == 1
  ${AndIf} $0 == ""
    ; HOST:PORT for everything, or http=HOST:PORT;https=HOST:PORT
    ClearErrors
    ${WordFind2X} ";$2;" ";https=" ";" "E+1" $1
    ${IfNot} ${Errors}
      StrCpy $2 $1
    ${EndIf}
    ClearErrors
    ${WordFind} $2 "=" "E+1" $1
    ${If} ${Errors}  ; no name is left in it
    ${AndIf} $2 != ""
      StrCpy $1 $2 7
      ${If} $1 == "http://"
        StrCpy $2 $2 "" 7
      ${EndIf}
      System::Call 'kernel32::SetEnvironmentVariableW(w "HTTPS_PROXY", w "http://$2")'
    ${EndIf}
  ${EndIf}
  ClearErrors
  Pop $2
  Pop $1
  Pop $0
FunctionEnd

; progress.txt holds PERCENT|TEXT.
Function ${un}ShowProgress
  Push $1
  Push $2
  Push $3
  ${If} $cancelled == 1
    FileOpen $1 "$PLUGINSDIR\stop" w
    FileClose $1
  ${EndIf}
  ClearErrors
  FileOpen $1 "$PLUGINSDIR\progress.txt" r
  ${IfNot} ${Errors}
    FileReadUTF16LE $1 $2
    FileClose $1
    !insertmacro StrSplit $2 $3
    ${If} $3 != ""
      IntOp $2 $2 * 300
      SendMessage $bar ${PBM_SETPOS} $2 0
      ${If} $3 != $shown
        StrCpy $shown $3
        DetailPrint "$3"
      ${EndIf}
    ${EndIf}
  ${EndIf}
  ClearErrors
  Pop $3
  Pop $2
  Pop $1
FunctionEnd

; The sentence of result.txt; without one uv could not start Python, and its own last words count.
Function ${un}ReadResult
  Push $1
  Push $2
  ClearErrors
  FileOpen $1 "$PLUGINSDIR\result.txt" r
  ${IfNot} ${Errors}
    FileReadUTF16LE $1 $said
    FileClose $1
  ${Else}
    ClearErrors
    FileOpen $1 "$PLUGINSDIR\uv.txt" r
    ${IfNot} ${Errors}
      ${Do}
        FileRead $1 $2
        ${If} ${Errors}
          ${ExitDo}
        ${EndIf}
        ${TrimNewLines} "$2" $2
        DetailPrint "$2"
        ${If} $2 != ""
          StrCpy $said $2
        ${EndIf}
      ${Loop}
      FileClose $1
    ${EndIf}
    StrCpy $said "$(NO_PYTHON) ($said)"
    StrCpy $code 1
    CreateDirectory "${STATE}\logs"
    CopyFiles /SILENT "$PLUGINSDIR\uv.txt" "${STATE}\logs\uv.txt"
  ${EndIf}
  ClearErrors
  Pop $2
  Pop $1
FunctionEnd

; The Cancel button, in the window's own thread: no register may change here.
Function ${un}OnCancel
  ${If} $running == 1
    MessageBox MB_YESNO|MB_ICONQUESTION "$(STOP)" IDNO +2
    StrCpy $cancelled 1
    Abort
  ${EndIf}
FunctionEnd

; A running window keeps its program's file.
Function ${un}WaitUntilClosed
  Push $0
  ${Do}
    ${IfNot} ${FileExists} "${PROGRAM}"
      ${ExitDo}
    ${EndIf}
    ClearErrors
    FileOpen $0 "${PROGRAM}" a
    ${IfNot} ${Errors}
      FileClose $0
      ${ExitDo}
    ${EndIf}
    MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "$(STILL_RUNNING)" /SD IDCANCEL IDRETRY +4
    SetErrorLevel 2
    DetailPrint "$(STILL_RUNNING)"
    Abort "$(STILL_RUNNING)"
  ${Loop}
  ClearErrors
  Pop $0
FunctionEnd
!macroend

; PERCENT|TEXT on $2 becomes PERCENT on $2 and TEXT on $3.
!macro StrSplit whole text
  Push $4
  Push $5
  StrCpy $4 0
  StrCpy ${text} ""
  ${Do}
    StrCpy $5 ${whole} 1 $4
    ${If} $5 == ""
      ${ExitDo}
    ${EndIf}
    ${If} $5 == "|"
      StrCpy $5 ${whole} $4
      IntOp $4 $4 + 1
      StrCpy ${text} ${whole} "" $4
      StrCpy ${whole} $5
      ${ExitDo}
    ${EndIf}
    IntOp $4 $4 + 1
  ${Loop}
  Pop $5
  Pop $4
!macroend

!insertmacro SHARED ""
!insertmacro SHARED "un."

Function SkipWhenResuming
  ${If} $resuming == 1
    Abort
  ${EndIf}
FunctionEnd

Section "Shoal" MAIN
  SectionIn RO
  Call WaitUntilClosed
  SetDetailsPrint textonly
  RMDir /r "$INSTDIR\setup"
  InitPluginsDir
  !include "${PAYLOAD}"
  ; Kept for a resume after a restart, and for repairs.
  ${If} $EXEPATH != "$INSTDIR\shoal-setup.exe"
    CopyFiles /SILENT "$EXEPATH" "$INSTDIR\shoal-setup.exe"
  ${EndIf}
  WriteUninstaller "$INSTDIR\uninstall.exe"
  SetDetailsPrint both
  WriteRegStr HKCU "Software\Shoal" "InstallDir" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "DisplayName" "Shoal"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "Publisher" "Shoal"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "DisplayIcon" "$INSTDIR\shoal.ico"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL_KEY}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegStr HKCU "${UNINSTALL_KEY}" "ModifyPath" '"$INSTDIR\shoal-setup.exe"'
  DeleteRegValue HKCU "${RUN_ONCE_KEY}" "ShoalSetup"

  StrCpy $1 ""
  ${If} $repairing == 1
    StrCpy $1 "$1 --repair"
  ${EndIf}
  Call ReadReachable
  StrCpy $1 "$1 --reachable $reachable"
again:
  DetailPrint "$(FETCHING_PYTHON)"
  Push '"$INSTDIR\setup\installers\windows\provision.py" install --root "$INSTDIR" --state "${STATE}" --exchange "$PLUGINSDIR" $1 --agreed "$agreed"'
  Call Provision
  ${If} $code == 4
    ; NAME|question
    StrCpy $2 $said
    !insertmacro StrSplit $2 $3
    ${If} $2 == "enable-wsl"
      StrCpy $3 "$(ENABLE_WSL)"
    ${EndIf}
    MessageBox MB_YESNO|MB_ICONQUESTION "$3" /SD IDNO IDNO declined
    StrCpy $agreed "$agreed$2,"
    Goto again
declined:
    SetErrorLevel 2
    Abort "$(DECLINED)"
  ${ElseIf} $code == 5
    Call ReadIcon
    WriteRegStr HKCU "${RUN_ONCE_KEY}" "ShoalSetup" '"$INSTDIR\shoal-setup.exe" /RESUME /AGREE=$agreed /REACHABLE=$reachable /DESKTOP=$icon'
    SetErrorLevel 3010
    ${If} ${Silent}
      Quit
    ${EndIf}
    StrCpy $said "$(RESTART_NEEDED)"
    MessageBox MB_YESNO|MB_ICONQUESTION "$said$\r$\n$\r$\n$(RESTART_NOW)" IDNO later
    Reboot
later:
    Abort "$said"
  ${ElseIf} $code != 0
    SetErrorLevel 2
    MessageBox MB_OK|MB_ICONEXCLAMATION "$said" /SD IDOK
    Abort "$said"
  ${EndIf}
  ${If} $said == "Shoal is installed."  ; the last page says so anyway
    StrCpy $said ""
  ${EndIf}
  WriteRegStr HKCU "Software\Shoal" "Reachable" "$reachable"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "DisplayVersion" "${VERSION}"
  ${GetSize} "$INSTDIR" "/S=0K" $0 $3 $4
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" "EstimatedSize" $0
  SetOutPath "$INSTDIR"
  CreateShortcut "$SMPROGRAMS\Shoal.lnk" "${PROGRAM}" "$\"$INSTDIR\start.py$\"" "$INSTDIR\shoal.ico"
SectionEnd

Section "$(DESKTOP)" DESKTOP_ICON
  SetOutPath "$INSTDIR"
  CreateShortcut "$DESKTOP\Shoal.lnk" "${PROGRAM}" "$\"$INSTDIR\start.py$\"" "$INSTDIR\shoal.ico"
SectionEnd

Section /o "$(REACHABLE)" REACHABLE_TO_OTHERS
SectionEnd

Function .onInit
  StrCpy $running 0
  StrCpy $agreed ""
  ${GetParameters} $options
  ${If} ${IsNativeARM64}
    MessageBox MB_OK|MB_ICONSTOP "$(NOT_ARM)" /SD IDOK
    SetErrorLevel 2
    Quit
  ${EndIf}
  ClearErrors
  ${GetOptions} $options "/RESUME" $0
  ${IfNot} ${Errors}
    StrCpy $resuming 1
  ${EndIf}
  ClearErrors
  ${GetOptions} $options "/AGREE=" $0
  ${IfNot} ${Errors}
    StrCpy $agreed "$0,"
  ${EndIf}
  ${If} ${Silent}
    StrCpy $agreed "without-card,$agreed"
  ${EndIf}
  ClearErrors
  ${GetOptions} $options "/DESKTOP=" $0
  ${IfNot} ${Errors}
  ${AndIf} $0 == "no"
    !insertmacro UnselectSection ${DESKTOP_ICON}
  ${EndIf}
  ClearErrors
  ReadRegStr $0 HKCU "${UNINSTALL_KEY}" "DisplayVersion"
  ${If} $0 == "${VERSION}"
  ${AndIf} $resuming != 1
    StrCpy $repairing 1
  ${EndIf}
  ReadRegStr $0 HKCU "Software\Shoal" "Reachable"
  ${If} $0 == "yes"
    !insertmacro SelectSection ${REACHABLE_TO_OTHERS}
  ${EndIf}
  ClearErrors
FunctionEnd

Function ReadIcon
  StrCpy $icon "no"
  ${If} ${SectionIsSelected} ${DESKTOP_ICON}
    StrCpy $icon "yes"
  ${EndIf}
FunctionEnd

; Whether others may connect: as the command line says, or as it is ticked.
Function ReadReachable
  ClearErrors
  ${GetOptions} $options "/REACHABLE=" $reachable
  ${If} ${Errors}
    StrCpy $reachable "no"
    ${If} ${SectionIsSelected} ${REACHABLE_TO_OTHERS}
      StrCpy $reachable "yes"
    ${EndIf}
  ${EndIf}
  ClearErrors
FunctionEnd

!insertmacro MUI_FUNCTION_DESCRIPTION_BEGIN
  !insertmacro MUI_DESCRIPTION_TEXT ${MAIN} "$(MAIN_ABOUT)"
  !insertmacro MUI_DESCRIPTION_TEXT ${DESKTOP_ICON} "$(DESKTOP_ABOUT)"
  !insertmacro MUI_DESCRIPTION_TEXT ${REACHABLE_TO_OTHERS} "$(REACHABLE_ABOUT)"
!insertmacro MUI_FUNCTION_DESCRIPTION_END

Section "Uninstall"
  ${GetParameters} $options
  StrCpy $2 "yes"
  ClearErrors
  ${GetOptions} $options "/KEEPDATA=" $0
  ${IfNot} ${Errors}
    StrCpy $2 $0
  ${Else}
    MessageBox MB_YESNOCANCEL|MB_ICONQUESTION "$(KEEP_DATA)" /SD IDYES IDYES asked IDNO delete
    Abort "$(NOTHING_REMOVED)"
delete:
    StrCpy $2 "no"
asked:
  ${EndIf}
  ClearErrors
  Call un.WaitUntilClosed
  InitPluginsDir
  StrCpy $1 ""
  ${If} $2 != "no"
    StrCpy $1 "--keep-data"
  ${EndIf}
  ${If} ${FileExists} "$INSTDIR\installed.json"
    Push '--offline "$INSTDIR\setup\installers\windows\provision.py" remove --root "$INSTDIR" --state "${STATE}" --exchange "$PLUGINSDIR" $1'
    Call un.Provision
    ${If} $code != 0
      SetErrorLevel 2
      MessageBox MB_OK|MB_ICONEXCLAMATION "$said" /SD IDOK
      Abort "$said"
    ${EndIf}
  ${EndIf}

  SetOutPath "$TEMP"
  Delete "$SMPROGRAMS\Shoal.lnk"
  Delete "$DESKTOP\Shoal.lnk"
  DeleteRegValue HKCU "${RUN_ONCE_KEY}" "ShoalSetup"
  ; What the person has turned on in the app's settings.
  DeleteRegValue HKCU "${RUN_KEY}" "Shoal"
  DeleteRegKey HKCU "Software\Classes\shoal"
  DeleteRegKey HKCU "Software\Classes\Shoal.Invite"
  DeleteRegKey HKCU "Software\Classes\.shoal"
  DeleteRegKey HKCU "Software\Shoal"
  DeleteRegKey HKCU "${UNINSTALL_KEY}"
  RMDir /r "$INSTDIR\setup"
  RMDir /r "$INSTDIR\versions"
  RMDir /r "$INSTDIR\launcher"
  RMDir /r "$INSTDIR\python"
  RMDir /r "$INSTDIR\downloads"
  RMDir /r "$INSTDIR\linux"
  Delete "$INSTDIR\installed.json"
  Delete "$INSTDIR\start.py"
  Delete "$INSTDIR\versions.json"
  Delete "$INSTDIR\LICENSE"
  Delete "$INSTDIR\THIRD-PARTY-NOTICES.txt"
  Delete "$INSTDIR\sbom.cdx.json"
  Delete "$INSTDIR\shoal.ico"
  Delete "$INSTDIR\shoal-setup.exe"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  RMDir /r "${STATE}\Cache\updates"
  ${If} $2 == "no"
    RMDir /r "${STATE}"
  ${EndIf}
SectionEnd
