#pragma once

#include <c10/core/DispatchKey.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace gallop {

/// The dispatch key at which the step compiler records calls (compile/recorder.h): the only one
/// below autograd and autocast that LibTorch itself does not use.
inline constexpr auto kRecordingKey = c10::DispatchKey::Fake;

/// Whether this thread's calls are recorded.
bool is_recording();

/// While it lives, calls of this thread are not recorded, and may read values on the host.
class Unrecorded {
 public:
  Unrecorded();

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

}  // namespace gallop
