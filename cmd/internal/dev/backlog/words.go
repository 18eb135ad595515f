package backlog

// words are lists of single words and short phrases.
const words = `
first: Amara|Björn|Carla|Dmitri|Elif|Farah|Gustavo|Hana|Ines|Jonas|Kwame|Leila|Marek|Noor|Olga|Pablo|Quinn|Rosa|Sven|Tariq|Uma|Viktor|Wanjiru|Ximena|Yusuf|Zofia
last: Abara|Bergström|Castellanos|Dvorak|Eriksen|Fontaine|Grabowski|Haddad|Ivanova|Jankowski|Kimura|Lindqvist|Mbeki|Novak|Okafor|Petrov|Quispe|Rahman|Santos|Tanaka|Ueda|Vasquez|Weber|Yilmaz|Zhang
city: Lisbon|Oslo|Nairobi|Porto|Hamburg|Kraków|Montréal|Osaka|Denver|Valencia|Tallinn|Auckland|Bogotá|Cape Town|Seville|Gdańsk|Leeds|Lyon|Turin|Boston
iata: LIS|OSL|NBO|OPO|HAM|KRK|YUL|KIX|DEN|VLC|TLL|AKL|BOG|CPT|SVQ|GDN|LBA|LYS|TRN|BOS
airline: Northwind Air|Blue Heron Airways|Solano Regional|Kestrel Airlines
carrier: NW|BH|SO|KE
cabin: economy|premium economy|business
fare: Basic|Flex|Plus
aircraft: A320neo|A321|E195-E2|B737-800|B787-9
delay: late inbound aircraft|crew rotation|weather at the destination|air traffic control slot|technical inspection
flight: ~carrier~~n3~
pnr: ~id6~
order: W-~n6~
sku: ~noun~-~n4~
product: pair of trail running shoes|cast-iron skillet|pair of wireless headphones|standing desk|ceramic pour-over set|merino base layer|folding bike helmet|mechanical keyboard|camping stove|linen duvet cover|burr coffee grinder|rain jacket|desk lamp|yoga mat|carry-on suitcase
colour: slate|moss green|sand|black|cobalt|terracotta|ivory|charcoal
dim: S|M|L|XL|40|41|42|43|44|one size
shipper: ParcelBird|SwiftBox|Meridian Post|CityCourier
payment: visa ending ~n4~|gift card|paypal|bank transfer|mastercard ending ~n4~
orderstatus: processing|packed|shipped|out for delivery|delivered|returned|on hold
street: Harbour Road|Mill Lane|Lindenallee|Rua do Sol|Calle Mayor|Station Street|Birch Avenue|Castle Hill
money: ~n2~.~n2~
bigmoney: ~n3~.~n2~
today: ~date~
date: 2026-01-1~day~|2026-01-2~day~|2026-02-0~dayz~
day: 0|1|2|3|4|5|6|7|8|9
dayz: 1|2|3|4|5|6|7|8|9
clock: 0~hour~:~min~|1~hour~:~min~
hour: 6|7|8|9
min: 05|10|20|25|35|40|45|50|55
noun: customer|bundle|bucket|cursor|digest|feed|filter|invoice|ledger|lease|manifest|order|page|parcel|payload|price|quota|record|refund|region|report|route|schedule|segment|session|shard|snapshot|stock|ticket|token|transfer|voucher|webhook|worker
verb: apply|build|check|claim|close|collect|compute|decode|drain|encode|expire|fetch|flush|index|load|merge|move|notify|parse|publish|reconcile|refresh|render|replay|resolve|retry|rotate|scan|send|settle|split|store|sync|update|validate|verify|write
adjective: stale|pending|partial|duplicate|missing|remote|cached|nested|late|broken|blank|foreign
service: billing|catalog|checkout|fulfilment|identity|inventory|ledger|notifier|pricing|search|shipping
level: INFO|INFO|INFO|DEBUG|WARN|ERROR
status: 200|200|200|201|204|400|404|409|500|503
method: GET|GET|POST|PUT|DELETE
errno: context deadline exceeded|connection reset by peer|unexpected EOF|duplicate key value violates unique constraint|no rows in result set|invalid character 'x' looking for beginning of value|too many open files
pyerr: KeyError: '~noun~_id'|ValueError: invalid literal for int() with base 10: ''|TypeError: unsupported operand type(s) for +: 'int' and 'NoneType'|AttributeError: 'NoneType' object has no attribute '~noun~'|TimeoutError: deadline of 5.0s exceeded
commit: ~hex7~
small: 2|3|4|5|6|7|8|9|12|15|20|24|30|48|60
ms: ~n1~|~n2~|~n2~|~n3~
`
