package redact

// nameWords are the parts of names that any rule looks for.
const nameWords = `pass password passwd passphrase passcode pwd token secret key credential creds auth authorization bearer basic cookie
	jwt salt cert signature hmac seed nonce session sid pat material mnemonic psk otp totp identified`
