// Moves to the archive, the table of ended launches on the head's disk, and requests that wait for
// records from it.
//
// A request about a launch that is not in memory, and one for a page of a list, waits until the
// shell has read the records (Recall, Recalled). They are in the state for the one step that
// answers, as if they had never left, and so every handler answers about them without knowing of
// the archive. Records are removed after the retention (CoreOptions::retention_us of lived time).
//
// Pure; view: the head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "head/core/machine/archive_records.h"
#include "head/core/machine/turn.h"

namespace troupe::head {

/// Notes the end of a launch, or a start: sees to the retention timer, and hands out what is to
/// move.
void ArchiveEnded(Turn& turn);
/// The shell has written records, or has not.
void OnArchived(Turn& turn, const Archived& input);
/// Records that could not be written are to be written again.
void OnArchiveTimer(Turn& turn);
/// At a start: submissions whose launches moved shortly before it (CoreOptions::moved).
void RememberMoved(Turn& turn);
/// Submissions that nobody repeats any more are forgotten.
void OnMovedTimer(Turn& turn);
/// The retention of the oldest ended launch in memory is over, perhaps.
void OnRetentionTimer(Turn& turn);

/// True: the message waits for a record, and is answered later, or was refused.
bool HoldForRecall(Turn& turn, const MessageFrom& input);
/// Takes in a message, as the request that waited.
using Answer = void (*)(Turn& turn, const MessageFrom& input);
void OnRecalled(Turn& turn, const Recalled& input, Answer answer);

/// Returns the archive's record of a launch that is over.
EndedRecord RecordOf(const Launch& launch);

}  // namespace troupe::head
