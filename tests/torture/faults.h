#pragma once

/// Reads from the environment which operations on files are counted, and which one fails; faults.cpp names the variables.
void read_fault_settings();
