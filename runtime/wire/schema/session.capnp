@0xd1f0a3c2b4e59602;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::wire::schema");
# Handshake and life of a session. Only these may arrive before authentication, and at most 4 KiB.
using import "types.capnp".ClusterId;
using import "types.capnp".NodeId;
using import "types.capnp".SessionId;
using import "types.capnp".TokenId;
using import "types.capnp".Role;

# First message of whoever connects.
struct Hello {
  version @0 :UInt16;          # highest protocol version spoken
  versionMin @1 :UInt16;
  role @2 :Role;
  clusterId @3 :ClusterId;     # nil: not known yet
  name @4 :Text;               # node name or program name, for people
  host @5 :Text;
  bootId @6 :Text;
  pid @7 :Int32;
  pythonVersion @8 :Text;
  tokenId @9 :TokenId;         # nil: no token is used (certificate or same-uid socket)
  proof @10 :Data;             # HMAC over the TLS exporter
  csr @11 :Data;               # DER; asks for a certificate
  wallTimeUs @12 :UInt64;
  subject @13 :NodeId;         # over a same-uid socket: who the sender was before; nil: new
}
struct Welcome {
  version @0 :UInt16;
  clusterId @1 :ClusterId;
  headIncarnation @2 :UInt64;
  session @3 :SessionId;
  subject @4 :NodeId;          # the id in the certificate: the node's, or the client's own
  certificate @5 :Data;        # PEM, when a csr was given
  caCertificate @6 :Data;      # PEM
  wallTimeUs @7 :UInt64;
  name @8 :Text;               # the head's host
}
struct Refused { code @0 :UInt16; text @1 :Text; }

# The error answer to any request.
struct ErrorReply { code @0 :UInt16; text @1 :Text; }
struct Ok { text @0 :Text; }
struct Goodbye { reason @0 :Text; }
