#pragma once

/// Everything about DNS messages: reading, writing, EDNS.
#include "dns/edns.h"
#include "dns/message_header.h"
#include "dns/message_reader.h"
#include "dns/message_writer.h"
#include "dns/rdata.h"
