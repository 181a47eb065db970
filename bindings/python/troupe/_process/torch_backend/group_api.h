// Functions of the extension that a library built against torch calls: plain C, so that both may
// come of different compilers.
//
//   const TroupeGroupApi* api = ...;            // its address is _native.group_api()
//   api->start(group, &operation, done, context, error, sizeof error);
//
// Grows at its end only; `version` says how far it goes. Functions may be called from any thread,
// without the GIL.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TROUPE_GROUP_API_VERSION 1

typedef struct TroupeGroup TroupeGroup;

/// Kinds of operations: the numbers of troupe::train::Collective, DataType and ReduceOp, which the
/// extension compares when it is compiled.
enum TroupeKind {
  kTroupeAllReduce,
  kTroupeBroadcast,
  kTroupeReduce,
  kTroupeAllGather,
  kTroupeReduceScatter,
  kTroupeAllToAll,
  kTroupeSend,
  kTroupeRecv,
  kTroupeGather,
  kTroupeScatter,
  kTroupeBarrier
};
enum TroupeType {
  kTroupeInt8 = 0,
  kTroupeUint8 = 1,
  kTroupeInt32 = 2,
  kTroupeUint32 = 3,
  kTroupeInt64 = 4,
  kTroupeUint64 = 5,
  kTroupeFloat16 = 6,
  kTroupeFloat32 = 7,
  kTroupeFloat64 = 8,
  kTroupeBfloat16 = 9,
  kTroupeInt16 = 64,
  kTroupeUint16 = 65,
  kTroupeBool = 66
};
enum TroupeOp {
  kTroupeSum = 0,
  kTroupeProd = 1,
  kTroupeMax = 2,
  kTroupeMin = 3,
  kTroupeAvg = 4,
  kTroupeBitAnd = 64,
  kTroupeBitOr = 65,
  kTroupeBitXor = 66
};

typedef struct TroupeOperation {
  int32_t kind, type, op, root, tag;
  const void* send;
  void* recv;
  uint64_t count;
  const size_t* send_counts;  // a count for each rank, or NULL; read before `start` returns
  const size_t* recv_counts;
  uint64_t most_ms;  // how long it may take, 0: as long as it does; then the group is stopped
} TroupeOperation;

/// The end of what was started: `error` is NULL where all went well, else a text. On a thread of
/// the group's, or on that of `start`. `source`: whom a message came from that was taken from
/// anybody, else -1.
typedef void (*TroupeDone)(void* context, const char* error, int source);

typedef struct TroupeGroupApi {
  uint32_t version;
  /// Counts the users of the group up or down; the last one leaves it in order, and does not wait.
  void (*retain)(TroupeGroup* group);
  void (*release)(TroupeGroup* group);
  /// Starts one operation. 0: `done` will be called, once. Else nothing was started, and `error`
  /// says why.
  int (*start)(TroupeGroup* group, const TroupeOperation* operation, TroupeDone done, void* context,
               char* error, size_t error_bytes);
  /// Ends what runs, here and on the other ranks. The first reason stays.
  void (*stop)(TroupeGroup* group, const char* reason);
} TroupeGroupApi;
