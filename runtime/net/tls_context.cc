#include "runtime/net/tls_context.h"

#include <utility>

#include "runtime/net/digest.h"
#include "runtime/net/openssl.h"
#include "runtime/net/tls_engine.h"

namespace troupe::net {
namespace {

constexpr long kCertificateChainBytesMax = 16 * 1024;

/// `leaf` carries a good signature of `ca`, may sign nothing itself, and its extensions are sound.
/// Time is not looked at here: ValidityProblem words that better.
bool SignedBy(X509* leaf, X509* ca, bool leaf_is_server) {
  const X509StorePtr store(X509_STORE_new());
  const X509StoreCtxPtr context(X509_STORE_CTX_new());
  if (!store || !context || X509_STORE_add_cert(store.get(), ca) != 1 ||
      X509_STORE_CTX_init(context.get(), store.get(), leaf, nullptr) != 1) {
    return false;
  }
  X509_VERIFY_PARAM* rules = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_NO_CHECK_TIME | X509_V_FLAG_X509_STRICT);
  X509_VERIFY_PARAM_set_purpose(rules,
                                leaf_is_server ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT);
  const bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  return good;
}

std::string ShortName(const std::string& key_hash) { return ClusterIdOf(key_hash).Short(); }

Status NotTheCluster(const std::string& peer, const std::string& shown, const std::string& expected,
                     bool own_certificate) {
  const std::string what = own_certificate ? "certificate" : "token";
  return MakeError(
      ErrorCode::kWrongCluster,
      peer + " is not the cluster this " + what + " belongs to (certificate " + shown + ", " +
          what + " expects " + expected +
          ")\n  someone may be answering in its place, or the head was set up anew: get a "
          "new token with `troupe token create` on the head");
}

Status NotOurs(const std::string& shown, const std::string& own) {
  return MakeError(ErrorCode::kWrongCluster,
                   "the certificate shown belongs to cluster " + shown + ", this is cluster " +
                       own + "\n  join with a token of this one: troupe token create > token");
}

/// The first protocol of a client's list (RFC 7301) that this server speaks; empty: none, and the
/// connection carries control messages or calls.
std::string_view ChooseProtocol(std::string_view offered, const TlsContext& context) {
  while (!offered.empty()) {
    const std::size_t size = static_cast<unsigned char>(offered[0]);
    if (size >= offered.size()) return {};
    const std::string_view name = offered.substr(1, size);
    if (name == kObjectsProtocol || (context.http() && name == kHttpProtocol)) return name;
    offered.remove_prefix(1 + size);
  }
  return {};
}

std::string_view ViewOf(const unsigned char* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

int SelectProtocol(SSL*, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned offered_bytes, void* context) {
  const std::string_view name =
      ChooseProtocol(ViewOf(offered, offered_bytes), *static_cast<const TlsContext*>(context));
  if (name.empty()) return SSL_TLSEXT_ERR_NOACK;
  *chosen = reinterpret_cast<const unsigned char*>(name.data());
  *size = static_cast<unsigned char>(name.size());
  return SSL_TLSEXT_ERR_OK;
}

/// Before anything is answered: a client that will get HTTP is shown the certificate for that.
int ChooseCertificate(SSL* ssl, int* alert, void* argument) {
  const auto& context = *static_cast<const TlsContext*>(argument);
  const unsigned char* extension = nullptr;
  std::size_t size = 0;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &extension,
                                &size) != 1 ||
      size < 2) {
    return SSL_CLIENT_HELLO_SUCCESS;
  }
  // The two bytes of the list's length are OpenSSL's to check.
  if (ChooseProtocol(ViewOf(extension + 2, size - 2), context) != kHttpProtocol)
    return SSL_CLIENT_HELLO_SUCCESS;
  if (SSL_use_certificate(ssl, context.http()->get()) == 1) return SSL_CLIENT_HELLO_SUCCESS;
  *alert = SSL_AD_INTERNAL_ERROR;
  return SSL_CLIENT_HELLO_ERROR;
}

}  // namespace

TlsContext::TlsContext(bool server, Clients clients, std::string ca_key_hash, const Clock& clock)
    : server_(server), clients_(clients), ca_key_hash_(std::move(ca_key_hash)), clock_(clock) {}

StatusOr<std::shared_ptr<TlsContext>> TlsContext::Make(bool server, Clients clients,
                                                       std::string ca_key_hash,
                                                       const Clock& clock) {
  std::shared_ptr<TlsContext> made(new TlsContext(server, clients, std::move(ca_key_hash), clock));
  SSL_CTX* context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
  if (context == nullptr) return OpenSslError("make a TLS context");
  made->context_.reset(context, SSL_CTX_free);
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(context, kCertificateChainBytesMax);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  const bool strict = server && clients == Clients::kRequired;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (strict ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     nullptr);
  SSL_CTX_set_cert_verify_callback(context, &TlsEngine::VerifyPeer, made.get());
  if (server) SSL_CTX_set_alpn_select_cb(context, &SelectProtocol, made.get());
  return made;
}

Status TlsContext::Use(const Credentials& credentials) {
  if (SSL_CTX_use_certificate(context_.get(), credentials.certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context_.get(), credentials.key.get()) != 1 ||
      // The CA goes along, so that a peer that knows only its hash can check it.
      SSL_CTX_add1_chain_cert(context_.get(), credentials.ca.get()) != 1) {
    return OpenSslError("use a certificate");
  }
  return {};
}

StatusOr<std::shared_ptr<const TlsContext>> TlsContext::ForServer(const Credentials& credentials,
                                                                  Clients clients,
                                                                  const Clock& clock,
                                                                  std::optional<Certificate> http) {
  TROUPE_ASSIGN(std::shared_ptr<TlsContext> made,
                Make(true, clients, credentials.ca.KeyHash(), clock));
  TROUPE_TRY(made->Use(credentials));
  made->http_ = std::move(http);
  if (made->http_) SSL_CTX_set_client_hello_cb(made->get(), &ChooseCertificate, made.get());
  return std::shared_ptr<const TlsContext>(std::move(made));
}

StatusOr<std::shared_ptr<const TlsContext>> TlsContext::ForPinnedClient(
    const std::string& ca_key_hash, const Clock& clock) {
  if (ca_key_hash.size() != 32)
    return MakeError(ErrorCode::kInvalid, "a CA pin must have 32 bytes");
  TROUPE_ASSIGN(std::shared_ptr<TlsContext> made,
                Make(false, Clients::kOptional, ca_key_hash, clock));
  return std::shared_ptr<const TlsContext>(std::move(made));
}

StatusOr<std::shared_ptr<const TlsContext>> TlsContext::ForClient(const Credentials& credentials,
                                                                  const Clock& clock) {
  TROUPE_ASSIGN(std::shared_ptr<TlsContext> made,
                Make(false, Clients::kOptional, credentials.ca.KeyHash(), clock));
  TROUPE_TRY(made->Use(credentials));
  return std::shared_ptr<const TlsContext>(std::move(made));
}

StatusOr<std::shared_ptr<const TlsContext>> TlsContext::ForAnonymousClient(
    const std::string& ca_pem, const Clock& clock) {
  TROUPE_ASSIGN(const Certificate ca, Certificate::FromPem(ca_pem));
  return ForPinnedClient(ca.KeyHash(), clock);
}

PeerVerdict TlsContext::Judge(X509* leaf, const std::vector<X509*>& chain,
                              const std::string& peer) const {
  PeerVerdict verdict;
  verdict.key_hash = Certificate::Share(leaf).KeyHash();
  X509* ca = nullptr;
  for (X509* candidate : chain) {
    if (Certificate::Share(candidate).KeyHash() == ca_key_hash_) ca = candidate;
  }
  const StatusOr<Identity> identity = Certificate::Share(leaf).identity();
  const std::string own = ShortName(ca_key_hash_);
  const bool names_cluster = identity.ok() && identity->cluster == cluster();
  if (ca == nullptr && !(server_ && names_cluster)) {
    const std::string shown = identity.ok() ? identity->cluster.Short()
                              : chain.empty()
                                  ? "of no cluster"
                                  : ShortName(Certificate::Share(chain.back()).KeyHash());
    verdict.problem =
        server_ ? NotOurs(shown, own)
                : NotTheCluster(peer, shown, own, SSL_CTX_get0_certificate(get()) != nullptr);
    return verdict;
  }
  if (ca == nullptr || !names_cluster || !SignedBy(leaf, ca, !server_)) {
    verdict.problem =
        identity.ok() && !names_cluster
            ? NotOurs(identity->cluster.Short(), own)
            : MakeError(ErrorCode::kJoinRefused,
                        peer + " shows a certificate that cluster " + own + " did not issue");
    return verdict;
  }
  const auto late = ValidityProblem(Certificate::Share(leaf).validity(), clock_.WallTimeUs());
  if (late) {
    verdict.out_of_date = true;
    verdict.problem =
        MakeError(ErrorCode::kJoinRefused, "the certificate of " + peer + " " + *late);
  }
  verdict.identity = *identity;
  verdict.ca_pem = Certificate::Share(ca).Pem();
  return verdict;
}

}  // namespace troupe::net
