#include "gallop/tensor/recording.h"

namespace gallop {

Unrecorded::Unrecorded() : guard_(kRecordingKey) {}

bool is_recording() { return c10::impl::tls_is_dispatch_key_included(kRecordingKey); }

}  // namespace gallop
