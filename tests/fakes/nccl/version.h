// The version of NCCL this library is built as; each has the functions of that version alone
// (versions/*.map).
#pragma once

#ifndef FAKE_NCCL_VERSION
#define FAKE_NCCL_VERSION 22809
#endif

namespace troupe::fakes {

inline constexpr int kVersion = FAKE_NCCL_VERSION;

}  // namespace troupe::fakes
