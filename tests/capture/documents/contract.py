"""A services contract in plain text and in Markdown, as such documents are written."""

CONTRACT = """\
MASTER SERVICES AGREEMENT

This Master Services Agreement (the "Agreement") is entered into as of March 1, 2026 by and between Northwind Traders
Inc., a Delaware corporation ("Customer"), and Contoso Robotics GmbH ("Provider").

TABLE OF CONTENTS

1. Definitions ............ 2
2. Services ............... 3

ARTICLE I
DEFINITIONS

1.1 "Affiliate" means any entity that controls, is controlled by, or is under common control with a party.

1.2 Confidential Information. "Confidential Information" means all information disclosed by one party to the other,
whether orally or in writing, that is marked as confidential or that reasonably should be understood to be so.

ARTICLE II – SERVICES AND FEES

2.1 Statements of Work
Provider shall perform the services set out in each statement of work. Each statement names the following:

1. Scope
2. Milestones
3. Acceptance criteria

2.2 Payment terms. Customer shall pay each undisputed invoice within thirty (30) days of receipt. Late amounts bear
interest at 1.5 % per month. What happens to disputed amounts?

Section 3. Term. This Agreement commences on the Effective Date and continues for 3.5
3.5 years unless terminated earlier in accordance with
Section 9 of this Agreement.

4. Warranties

Provider warrants that the services conform to their description for 90 days. The weather was nice.

LIMITATION OF LIABILITY

IN NO EVENT SHALL EITHER PARTY BE LIABLE FOR ANY INDIRECT DAMAGES ARISING OUT OF OR RELATED
TO THIS AGREEMENT, AND THE TOTAL LIABILITY IS LIMITED TO USD 500,000.

EXHIBIT A: Rates

The daily rate of an engineer is EUR 1,200. No. 7 Harbour St. is the place of delivery.
"""

MARKDOWN = """\
---
title: Runbook
---

Runbook
=======

How the service is run.

## Deploying

Run the script. It must never run twice.

```bash
# not a heading
## nor this
```

### Rolling back ###

Say `make back`.

<!--
# hidden
-->

On-call
-------

- one
---

## [Contacts](https://example.org) and **keys** {#contacts}

Ask Dana Petrov before 2026-04-01.
"""
