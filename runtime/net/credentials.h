// Credentials of a process: its key, its certificate, and the CA it trusts.
//
// View: one process. A value. On disk: `<folder>/<name>.key` (0600), `<name>.crt`, `ca.crt`;
// replaced by rename at renewal, the certificate after the key, so that a crash between leaves a
// pair that Load recognises as not matching (kInvalid) and the caller joins anew. Load and Store
// block on disk.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/net/certificate.h"
#include "runtime/net/private_key.h"

namespace troupe::net {

struct Credentials {
  PrivateKey key;
  Certificate certificate;
  Certificate ca;
};

/// kNotFound when there are none; kInvalid when key and certificate do not belong together, or the
/// certificate to another cluster than `ca.crt`.
StatusOr<Credentials> LoadCredentials(const std::string& folder, const std::string& name);
Status StoreCredentials(const std::string& folder, const std::string& name,
                        const Credentials& credentials);
/// Checks that key, certificate and CA belong together; PEM texts as Welcome carries them.
StatusOr<Credentials> MakeCredentials(PrivateKey key, std::string_view certificate_pem,
                                      std::string_view ca_pem);

}  // namespace troupe::net
