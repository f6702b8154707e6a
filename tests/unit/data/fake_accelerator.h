#pragma once

#include <cstdint>

#include <c10/core/Device.h>

namespace gallop::data {

/// Registers a device whose memory is the CPU's and whose streams put off all work until it is
/// waits for it, as late as a real device may do it. What reads a copy too early, or overwrites its
/// source, sees wrong numbers.
c10::Device fake_accelerator();

/// Copies that were put off on the stream from the pool and are not yet done.
int64_t copies_in_flight();

/// How often the host has waited for the device so far: for an event, or for a copy.
int64_t host_waits();
void note_host_wait();

/// Does what the current stream has put off, as a device may at any time.
void run_current_stream();

}  // namespace gallop::data
