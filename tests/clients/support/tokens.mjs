// JSON Web Tokens as the field's deployments mint them.
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

function token(header, claims, signed) {
  const text = `${encoded({ typ: 'JWT', ...header })}.${encoded(claims)}`;
  return `${text}.${signed(Buffer.from(text)).toString('base64url')}`;
}

/** Signed by a shared secret. */
export const hs256 = (secret, claims) =>
  token({ alg: 'HS256' }, claims, (text) => createHmac('sha256', secret).update(text).digest());

/** Signed by an Ed25519 key. */
export const eddsa = (key, claims, kid) =>
  token({ alg: 'EdDSA', ...(kid && { kid }) }, claims, (text) => sign(null, text, key));

/** Signed by an RSA key. */
export const rs256 = (key, claims, kid) =>
  token({ alg: 'RS256', ...(kid && { kid }) }, claims, (text) => sign('sha256', text, key));

/** Not signed at all. */
export const unsigned = (claims) => token({ alg: 'none' }, claims, () => Buffer.alloc(0));

export const ed25519Pair = () => generateKeyPairSync('ed25519');
export const rsaPair = () => generateKeyPairSync('rsa', { modulusLength: 2048 });

/** The public half as PEM. */
export const pem = (pair) => pair.publicKey.export({ type: 'spki', format: 'pem' });

/** The public half as an entry of a JWKS. */
export const jwk = (pair, kid, alg) => ({ ...pair.publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' });

/** Seconds since the Unix epoch, as claims have them. */
export const nowSeconds = () => Math.floor(Date.now() / 1000);
