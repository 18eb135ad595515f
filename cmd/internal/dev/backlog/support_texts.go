package backlog

// supportTexts are the templates of support chats.
const supportTexts = `
== system_airline
You are the virtual agent of ~airline~. Today is ~today~.
Help customers with bookings, changes, cancellations, baggage and compensation. Be brief, friendly and exact.

Rules:
- Before any change, list what will change and what it costs, and wait for an explicit yes.
- ~fare~ fares can be changed up to 24 hours before departure; Basic fares cannot be changed, only cancelled within 24 hours of booking.
- Checked bags: one free on Flex, two on Plus; each further bag is ~n2~ EUR. Members of the gold tier get one more.
- Compensation is offered only when the customer asks for it and the delay was above three hours.
- Only refund to the original form of payment. Never invent flight numbers, prices or policies: look them up.
- Transfer to a human agent only if the request is outside of what your tools can do.
== system_shop
You are the support assistant of Hollow Oak Outfitters, an online shop for home and outdoor goods. Today is ~today~.
You can look up customers, orders, stock and shipments, and start exchanges, returns and refunds.

Rules:
- Identify the customer by e-mail or by name and postcode before you tell anything about an order.
- An order can be changed while it is processing. Delivered items can be exchanged or returned within 30 days.
- A refund goes to the original payment method and takes five to seven days, or at once as a gift card.
- Ask for confirmation before every action that costs money or cannot be undone.
- Answer in the language of the customer. Keep it short.
== talk_airline
Hi, my name is ~first~ ~last~, booking ~pnr~. I need to move my flight from ~city~ to ~city~ on ~date~ to a day later, if that is possible without paying much.
>>
I have found your booking ~pnr~ under ~first~ ~last~. The earliest alternative is ~flight~ on ~date~, leaving ~city~ at ~clock~ and arriving at ~clock~. The fare difference is ~money~ EUR per person, and there is no change fee on your ~fare~ ticket. Shall I go ahead?
--
My flight ~flight~ was ~small~ hours late yesterday because of ~delay~. I missed a connection in ~city~ and had to pay for a hotel (~bigmoney~ EUR). What am I entitled to?
>>
I am sorry about that delay. Our records show that ~flight~ arrived ~small~ hours late; the reason given is "~delay~". You can claim the hotel if you send the receipt, and I can offer a voucher of ~n3~ EUR for each of you. Would you like me to issue it?
--
Can I add a second checked bag to ~pnr~? We are ~small~ people and one of us travels with a folded bike.
>>
Done. The bag is on the booking now, ~money~ EUR were charged to your ~payment~, and a confirmation is on its way to your e-mail address.
--
I want to cancel the return leg of ~pnr~ and keep the outbound. Last time I asked, somebody told me the whole booking would be gone.
>>
On a ~fare~ fare the legs can be cancelled one by one, so your outbound flight is not touched. The refund for the return leg would be ~bigmoney~ EUR to your ~payment~, in five to seven days. Please confirm with "yes".
--
Is there anything earlier than ~flight~ from ~city~ to ~city~ on ~date~? I don't mind a stop as long as I arrive before ~clock~.
>>
These are the options on ~date~:
1. ~flight~, ~clock~ to ~clock~, direct, ~bigmoney~ EUR, ~n1~ seats left
2. ~flight~ and ~flight~ by way of ~city~, ~clock~ to ~clock~, ~bigmoney~ EUR
3. ~flight~, ~clock~ to ~clock~, direct, ~bigmoney~ EUR in ~cabin~
Which one would you like?
--
Please change the passenger name: it says ~first~ ~last~, but the passport says ~first~ ~last~-Lindholm.
>>
I can correct up to three letters myself. A different surname needs a copy of the passport; I have opened case ~n6~ for you, and a colleague will write to you today.
--
I'd like to upgrade both of us to ~cabin~ on ~flight~. What would it cost, and could I pay part of it with the voucher I got after the delay in ~city~?
>>
The upgrade of ~flight~ to ~cabin~ costs ~bigmoney~ EUR for both of you. Your voucher of ~n2~ EUR can be used for it, the rest would go to your ~payment~. There are ~n1~ seats left. Would you like it?
--
What's the latest I can check in for ~flight~ with a bag? I am coming from a meeting in ~city~ and it will be tight.
>>
Bag drop for ~flight~ closes 45 minutes before departure, so at ~clock~. With hand luggage only you can go straight to the gate; it closes 20 minutes before departure.
== follow_airline
And seats together, please. The app only shows me ~small~~seat~ and ~n2~~seat~, which are not even in the same half of the aircraft.
>>
I have put you into ~small~~seat~ and the seat beside it on ~flight~, and the app shows it within a few minutes. On a ~fare~ fare that is free of charge.
--
ok
>>
Thank you. Then I go ahead. You will get a new itinerary for ~pnr~ by e-mail in a few minutes; nothing else has changed.
--
Yes, please go ahead.
>>
Done: ~pnr~ is changed and your ~payment~ was charged ~money~ EUR. Your new flight is ~flight~ on ~date~ at ~clock~. Is there anything else?
--
No wait. Before you do that: does the new fare still include the bag? Otherwise leave everything as it is.
>>
Yes, the bag stays: the new fare is ~fare~ as before, and it holds one checked bag of 23 kg for each of you. I have changed nothing yet. Shall I?
== seat
A
--
C
--
D
--
F
== talk_shop
Hello, I ordered a ~product~ (order #~order~) and it still says "~orderstatus~". It was supposed to be here on ~date~.
>>
Thank you, ~first~. Order ~order~ left our warehouse on ~date~ with ~shipper~ (tracking ~n10~) and is now marked as "~orderstatus~". The carrier expects it on ~date~. Shall I send you a message when it arrives?
--
The ~product~ in ~order~ arrived with a dent. I'd rather have a new one than my money back, in ~colour~ if you have it.
>>
I am sorry that it came damaged. We have ~n2~ pieces of the ~product~ in ~colour~, size ~dim~, in stock. I can send one today and a return label for the old one; nothing to pay for you. Is that all right?
--
I'm ~first~ ~last~, ~street~ ~n2~, postcode ~n5~. Can you tell me what I bought in December and which of it can still be returned?
>>
These items can still be returned:
- ~product~, ~colour~, ~dim~: ~money~ EUR, until ~date~
- ~product~, ~colour~: ~money~ EUR, until ~date~
- ~product~: ~bigmoney~ EUR, until ~date~
Which of them would you like to send back?
--
Could you change the address of ~order~ to ~street~ ~n3~, ~city~? I moved last week and forgot.
>>
The address is changed to ~street~ ~n2~, ~city~. As the parcel has not been packed yet, the date does not change.
--
You charged me twice: ~money~ and again ~money~, both on my ~payment~, both on ~date~.
>>
I see both charges. The second one is a reservation that was never settled; your bank releases it within three days. If it is still there on ~date~, write to us again and mention ~n8~.
--
Do you have the ~product~ in ~colour~, size ~dim~? And would it be here before ~date~ if I order today?
>>
Yes, we have ~n2~ of the ~product~ in ~colour~ in our ~city~ warehouse. Ordered before ~clock~ it leaves the same day and takes two working days with ~shipper~, so it would be there in time.
--
I want to return everything in ~order~ except for the ~product~. How does that work with the discount I got for buying three things?
>>
The discount is worked out again for what you keep: you get ~money~ EUR back to your ~payment~ for the returned items, less ~n1~.50 EUR of discount that no longer applies. Do you want me to start the return?
--
The tracking of ~shipper~ says "delivered to a neighbour", but none of my neighbours has it. I have asked all of them.
>>
I have opened a search with ~shipper~, number ~n9~. They have two working days. If the parcel does not turn up, we send a new one or refund ~money~ EUR, as you like.
--
Which ~product~ would you recommend for somebody who has never used one? Budget about ~bigmoney~.
>>
For a beginner I would take the simpler ~product~ at ~money~ EUR: it is sturdier and easier to look after, and it comes in ~colour~. The larger one at ~bigmoney~ EUR is worth it if you use it every day. Both can be returned within 30 days.
== follow_shop
yes please
>>
Done. You will get a confirmation by e-mail, and I have noted it on order ~order~. The label is in the same mail.
--
Thanks. One more thing: can I get an invoice with our company's name on it? It's for ~order~.
>>
The invoice for ~order~ with your company name is on its way to your e-mail address; the number is ~n8~. The old one is void.
--
No, not a gift card. I paid by ~payment~ and I want it back there.
>>
Of course: ~money~ EUR go back to your ~payment~. The bank takes five to seven days. I have cancelled the gift card.
== article
Changes and refunds. A customer may change the date, the time or the item while the order has not left the house. After that the rules for returns apply. A change that lowers the price is refunded to the original form of payment; one that raises it is charged before it takes effect.
--
Damaged goods. Ask for one photo of the item and one of the parcel. Damage that is reported within 14 days is settled without a return when the value is below ~n2~ EUR; above that a label is sent. The ~service~ team is told in every case.
--
Delays. When the ~shipper~ scan is older than ~small~ days, open a search. The customer can choose between a second delivery and a refund as soon as the search has been open for 48 hours. Do not offer a voucher unless the customer asks.
--
Identity. Two of these are enough: e-mail address, postcode, order number, last four digits of the card. A booking reference alone is not. Never read out an address that the customer has not named first.
--
Baggage. Sports equipment counts as one checked bag up to ~n2~ kg; it has to be announced 24 hours ahead. Bikes are carried on ~aircraft~ and larger aircraft only. Musical instruments may take a seat at the ~cabin~ fare.
== user_interrupts
Never mind that. I found it myself in the meantime. Let's go on with the other thing.
--
Sorry, stop. That's taking too long, forget it for now.
--
wait, wrong one, ignore my last message
== assistant_resumes
All right, I leave that. Where were we?
--
Understood. I have what I need and go on from here.
--
Noted, thank you.
`
