#pragma once

#include <cstdint>

#include <c10/core/Device.h>

namespace gallop::data {

/// Registers a device with CPU memory whose streams defer all work until they are waited for, the
/// latest that a real device may do it. Reading a copy too early, or overwriting its source, gives
/// wrong numbers.
c10::Device fake_accelerator();

/// Copies deferred on the stream from the pool that are not yet done.
int64_t copies_in_flight();

/// How often the host has waited for the device, for an event or a copy.
int64_t host_waits();
void note_host_wait();

/// Runs the work deferred on the current stream, as a device may at any time.
void run_current_stream();

}  // namespace gallop::data
