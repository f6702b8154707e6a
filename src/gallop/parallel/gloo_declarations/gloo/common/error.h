#pragma once
// See README.md beside this folder.
