#include "runtime/net/tls_engine.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/net/openssl.h"

namespace troupe::net {
namespace {

int EngineIndex() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

}  // namespace

TlsEngine::TlsEngine(std::shared_ptr<const TlsContext> context, ExpectedPeer expected,
                     std::string peer)
    : context_(std::move(context)), expected_(std::move(expected)), peer_(std::move(peer)) {}
TlsEngine::~TlsEngine() = default;

StatusOr<std::unique_ptr<TlsEngine>> TlsEngine::Make(std::shared_ptr<const TlsContext> context,
                                                     ExpectedPeer expected, std::string peer) {
  std::unique_ptr<TlsEngine> made(
      new TlsEngine(std::move(context), std::move(expected), std::move(peer)));
  SSL* ssl = SSL_new(made->context_->get());
  if (ssl == nullptr) return OpenSslError("make a TLS session");
  made->ssl_.reset(ssl, SSL_free);
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  if (in == nullptr || out == nullptr) return OpenSslError("make a TLS session");
  BIO_set_mem_eof_return(in, -1);
  BIO_set_mem_eof_return(out, -1);
  SSL_set_bio(ssl, in, out);  // owned by ssl now
  SSL_set_ex_data(ssl, EngineIndex(), made.get());
  return made;
}

StatusOr<std::unique_ptr<TlsEngine>> TlsEngine::Client(std::shared_ptr<const TlsContext> context,
                                                       ExpectedPeer expected, std::string peer) {
  const std::string server_name = expected.server_name;
  const bool objects = expected.objects;
  TROUPE_ASSIGN(std::unique_ptr<TlsEngine> made,
                Make(std::move(context), std::move(expected), std::move(peer)));
  SSL_set_connect_state(made->ssl_.get());
  if (!server_name.empty() &&
      SSL_set_tlsext_host_name(made->ssl_.get(), server_name.c_str()) != 1) {
    return OpenSslError("set the TLS server name");
  }
  const std::string protocol =
      static_cast<char>(kObjectsProtocol.size()) + std::string(kObjectsProtocol);
  if (objects &&
      SSL_set_alpn_protos(made->ssl_.get(), reinterpret_cast<const unsigned char*>(protocol.data()),
                          static_cast<unsigned>(protocol.size())) != 0) {
    return OpenSslError("set the TLS protocol");
  }
  return made;
}

StatusOr<std::unique_ptr<TlsEngine>> TlsEngine::Server(std::shared_ptr<const TlsContext> context,
                                                       std::string peer) {
  TROUPE_ASSIGN(std::unique_ptr<TlsEngine> made,
                Make(std::move(context), ExpectedPeer(), std::move(peer)));
  SSL_set_accept_state(made->ssl_.get());
  return made;
}

int TlsEngine::VerifyPeer(X509_STORE_CTX* store, void* argument) {
  const auto* context = static_cast<const TlsContext*>(argument);
  auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* engine = static_cast<TlsEngine*>(SSL_get_ex_data(ssl, EngineIndex()));
  std::vector<X509*> chain;
  STACK_OF(X509)* presented = X509_STORE_CTX_get0_untrusted(store);
  for (int i = 0; i < sk_X509_num(presented); ++i) chain.push_back(sk_X509_value(presented, i));
  const bool good =
      engine->Accept(context->Judge(X509_STORE_CTX_get0_cert(store), chain, engine->peer_));
  if (!good) X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
  return good ? 1 : 0;
}

bool TlsEngine::Accept(PeerVerdict verdict) {
  verdict_ = std::move(verdict);
  const bool usable = verdict_.identity && !verdict_.out_of_date;
  if (context_->is_server()) return usable || context_->clients_ == TlsContext::Clients::kOptional;
  if (!usable) return false;
  const Identity& who = *verdict_.identity;
  const bool role_fits = expected_.role == wire::Role::kNone || expected_.role == who.role;
  const bool id_fits = expected_.id == Id128() || expected_.id == who.id;
  if (role_fits && id_fits) return true;
  verdict_.problem = MakeError(ErrorCode::kJoinRefused,
                               peer_ + " is " + wire::NameOf(who.role) + " " + IdToHex(who.id) +
                                   ", not the " + wire::NameOf(expected_.role) + " asked for");
  return false;
}

Status TlsEngine::Start() { return Handshake(); }

Status TlsEngine::Feed(std::string_view ciphertext) {
  BIO* in = SSL_get_rbio(ssl_.get());
  while (!ciphertext.empty()) {
    const int n = BIO_write(in, ciphertext.data(),
                            static_cast<int>(std::min<std::size_t>(ciphertext.size(), 1u << 20)));
    if (n <= 0) return OpenSslError("buffer TLS data");
    ciphertext.remove_prefix(static_cast<std::size_t>(n));
  }
  return established_ ? Status() : Handshake();
}

Status TlsEngine::Handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  if (done == 1) {
    established_ = true;
    return {};
  }
  const int error = SSL_get_error(ssl_.get(), done);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return {};
  if (!verdict_.problem.ok()) {
    ERR_clear_error();
    return verdict_.problem;
  }
  return Fail("the TLS handshake failed");
}

Status TlsEngine::Fail(const char* doing) {
  return MakeError(ErrorCode::kInvalid, peer_ + ": " + OpenSslText(doing));
}

StatusOr<std::size_t> TlsEngine::Read(char* into, std::size_t size) {
  if (!established_) return std::size_t{0};
  ERR_clear_error();
  std::size_t n = 0;
  if (SSL_read_ex(ssl_.get(), into, size, &n) == 1) return n;
  switch (SSL_get_error(ssl_.get(), 0)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return std::size_t{0};
    case SSL_ERROR_ZERO_RETURN:
      closed_ = true;
      return std::size_t{0};
    default:
      return Fail("reading TLS data failed");
  }
}

Status TlsEngine::Write(std::string_view plain) {
  if (!established_)
    return MakeError(ErrorCode::kInternal, "TLS: written to before the handshake ended");
  ERR_clear_error();
  while (!plain.empty()) {
    std::size_t n = 0;
    if (SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &n) != 1) {
      return Fail("writing TLS data failed");
    }
    plain.remove_prefix(n);
  }
  return {};
}

void TlsEngine::Shutdown() {
  if (!established_) return;
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

bool TlsEngine::HasOutgoing() const { return BIO_ctrl_pending(SSL_get_wbio(ssl_.get())) > 0; }

std::string TlsEngine::TakeOutgoing() {
  BIO* out = SSL_get_wbio(ssl_.get());
  std::string bytes(BIO_ctrl_pending(out), '\0');
  if (!bytes.empty()) BIO_read(out, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

std::size_t TlsEngine::TakeOutgoing(char* into, std::size_t size) {
  const int n = BIO_read(SSL_get_wbio(ssl_.get()), into, static_cast<int>(size));
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

StatusOr<std::string> TlsEngine::Exporter(std::string_view label) const {
  std::string bytes(32, '\0');
  if (SSL_export_keying_material(ssl_.get(), reinterpret_cast<unsigned char*>(bytes.data()),
                                 bytes.size(), label.data(), label.size(), nullptr, 0, 0) != 1) {
    return OpenSslError("derive the session's exporter");
  }
  return bytes;
}

std::string TlsEngine::server_name() const {
  const char* name = SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name);
  return name == nullptr ? "" : name;
}

std::string_view TlsEngine::protocol() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

}  // namespace troupe::net
