# A server of the Model Context Protocol, sound or not: its first argument says how it begins, and each tool is a fault.
how=$1
say() { printf '%s\n' "$1"; }
gives() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
fails() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":$1,\"message\":\"$2\"}}"; }
text() { gives "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }

text_of='{"type":"object","properties":{"path":{"type":"string"}}}'
kind_of_read='string'
[ "$how" = changed ] && kind_of_read='integer'
schema_of_read="{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"$kind_of_read\"}},\"required\":[\"path\"]}"
described=Reads
[ "$how" = reworded ] && described='Reads, it says now'
[ "$how" = repeats ] && described="With $TOKEN it reads"
hints=''
[ "$how" = destroys ] && hints=',"annotations":{"destructiveHint":true}'
tool() { printf '{"name":"%s","description":"Does %s.","inputSchema":{"type":"object"}}' "$1" "$1"; }
hinted() { printf '{"name":"%s","description":"Does %s.","inputSchema":{"type":"object"},"annotations":{"%s":true}}' "$1" "$1" "$2"; }
number='{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'
counted="{\"name\":\"counts\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"least\":{\"type\":\"integer\"}}},\"outputSchema\":$number}"
read_tool="{\"name\":\"read\",\"description\":\"$described a note.\",\"inputSchema\":$schema_of_read$hints}"

printf '%s\n' "$$" >> starts.txt
tr '\0' '\n' < "/proc/$$/environ" > environ.txt 2> /dev/null
case $how in
  exits) echo 'no licence' >&2; exit 3 ;;
  noisy) say 'Listening on port 3000'; say '{"jsonrpc": "2.0", "id": 1, "resu' ;;
  chatters) say "TOKEN=$TOKEN" ;;
  silent) printf 'Which key? ' >&2 ;;
  waits) while [ ! -e calls.txt ]; do sleep 0.05; done ;;
  bom) printf '\357\273\277' ;;
esac

while IFS= read -r line; do
  id=${line#*'"id":'}
  id=${id%%,*}
  case $line in
    *'"method":"server/discover"'*)
      case $how in
        newest | claims)
          gives '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"notes","version":"2"}}}' ;;
        hangs) ;;
        *) fails -32601 'Method not found' ;;
      esac ;;
    *'"method":"initialize"'*)
      case $how in
        newest) fails -32601 'Method not found' ;;
        silent) ;;
        *) gives '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"notes","version":"1"},"instructions":"Ask me first."}' ;;
      esac ;;
    *'"method":"tools/list"'*)
      case $how in
        claims)
          case $line in
            *protocolVersion*) fails -32600 'initialize comes first' ;;
            *) gives "{\"tools\":[$read_tool]}" ;;
          esac ;;
        endless) gives '{"tools":[],"nextCursor":"again"}' ;;
        gone) gives '{"tools":[]}' ;;
        *)
          case $line in
            *'"cursor":"2"'*)
              gives "{\"tools\":[$(hinted numbers readOnlyHint),$(tool twice),$(tool asks),$(tool refuses),$(tool errs),$(tool odd),$(tool large),$(tool dies),$(tool sleeps),$(tool questions),$(tool floods),$(hinted flaky idempotentHint),$(hinted wipes destructiveHint),$(tool nan),$(tool half),$(hinted once readOnlyHint),$counted,$(tool works)]}" ;;
            *) gives "{\"tools\":[$read_tool,{\"name\":\"bad\",\"inputSchema\":null}],\"nextCursor\":\"2\"}" ;;
          esac ;;
      esac ;;
    *'"method":"tools/call"'*)
      printf '%s\n' "$line" >> calls.txt
      name=${line#*'"name":"'}
      name=${name%%'"'*}
      case $name in
        read) text 'a note' ;;
        numbers) gives '{"content":[],"structuredContent":{"n":12345678901234567890.10}}' ;;
        twice) text one; text two ;;
        asks)
          say '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?"}}'
          IFS= read -r reply
          say '{"jsonrpc":"2.0","id":"r","method":"roots/list"}'
          IFS= read -r other
          printf '%s\n%s\n' "$reply" "$other" > replies.txt
          text asked ;;
        counts) case $line in *'"least":99'*) gives '{"content":[],"structuredContent":{"n":"seven"}}'; continue ;; esac
          gives '{"content":[{"type":"text","text":"seven notes"}],"structuredContent":{"n":7}}' ;;
        works)
          token=none
          case $line in *'"progressToken":'*) token=${line#*'"progressToken":'} ; token=${token%%[,\}]*} ;; esac
          report() { say "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$1,\"progress\":$2,\"total\":3,\"message\":\"page $2\"}}"; }
          if [ "$token" != none ]; then
            report 99 1
            for page in 1 2 3; do report "$token" $page; done
          fi
          text "token $token" ;;
        refuses) fails -32602 'Unknown note' ;;
        errs) gives '{"isError":true,"content":[{"type":"text","text":"no such note"}],"structuredContent":{"code":2}}' ;;
        odd) gives '{"content":[{"type":"text","text":"before"},{"type":"image","data":"aGVsbG8=","mimeType":"image/png"},{"type":"hologram"}]}' ;;
        large) printf '{"jsonrpc":"2.0","id":%s,"result":"' "$id"; head -c 5000000 /dev/zero | tr '\0' x; say '"}' ;;
        dies) echo 'out of luck' >&2; exit 7 ;;
        flaky) if [ -e flaky.txt ]; then text recovered; else : > flaky.txt; exit 9; fi ;;
        wipes) text wiped ;;
        floods) while :; do say noise; done ;;
        sleeps) say 'at work' ;;
        nan) gives '{"structuredContent":{"id":1,"n":NaN}}' ;;
        half) text '<\ud800>' ;;
        once)
          if [ -e once.txt ]; then text 'again'; else : > once.txt; exit 7; fi ;;
        questions)
          kind=${line#*'"kind":"'}
          kind=${kind%%'"'*}
          account='{"type":"object","properties":{"account":{"type":"string","enum":["ops","sales"]}},"required":["account"]}'
          who="{\"method\":\"elicitation/create\",\"params\":{\"message\":\"Which account?\",\"requestedSchema\":$account}}"
          case $kind in
            url) who='{"method":"elicitation/create","params":{"mode":"url","message":"Sign in.","url":"https://x.example/a"}}' ;;
            sampling) who='{"method":"sampling/createMessage","params":{}}' ;;
          esac
          asked="{\"resultType\":\"input_required\",\"requestState\":\"$$\",\"inputRequests\":{\"who\":$who}}"
          case $kind:$line in
            endless:*) gives "$asked" ;;
            shed:*'"requestState"'*) text 'not shed' ;;
            shed:*) gives '{"resultType":"input_required","requestState":"later"}' ;;
            # What another process asked is not known here.
            *'"inputResponses"'*"\"requestState\":\"$$\""* | *"\"requestState\":\"$$\""*'"inputResponses"'*)
              case $line in
                *'"action":"decline"'*) text declined ;;
                *)
                  account=${line#*'"account":"'}
                  printf '%s\n' "${account%%'"'*}" >> booked.txt
                  text "booked for ${account%%'"'*}" ;;
              esac ;;
            *'"requestState"'*) fails -32602 'the state of the request is not known' ;;
            *) gives "$asked" ;;
          esac ;;
      esac ;;
    *'"method":"notifications/cancelled"'*) printf '%s\n' "$line" >> cancelled.txt ;;
  esac
done
# What it has acknowledged is written after the end of its input.
if [ "$how" = noisy ]; then sleep 0.1; printf '%s\n' "$$" >> saved.txt; fi
